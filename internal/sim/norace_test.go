//go:build !race

package sim

const manyRuns = 20_000
