// Package proof holds the tests and benchmarks that need the whole house: a real
// service on a real socket, the real ledger file, and real processes that are
// killed. It has no code of its own.
package proof
