//go:build race

package sim

// manyRuns are fewer under the race detector, which makes them ten times as slow.
const manyRuns = 1500
