// Package ledgertest has the suite that every desk.Ledger must pass, and one
// in memory for tests.
//
// Its job is to say in code what the contract means: what a request ID binds, who
// may submit, who waits, what is never overwritten, what looks like a request asked
// twice, when a worker looks at what is open, what people add and what a purge
// leaves, and what two handles on one store see of each other. An implementation
// calls Ledger from a test of its own. Not its job: what happens to a ledger when a
// process dies or a disk fills up; only the implementation can provoke that. It
// imports agentic, client, go-cmp and testing.
package ledgertest
