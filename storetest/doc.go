// Package storetest is the suite that every client.Ledger must pass, and an
// in-memory Ledger for tests.
//
// Its job is to say in code what the contract of client.Ledger means: what a
// request ID binds, who may submit, who waits, what is never overwritten, and
// what two handles on one store see of each other. An implementation calls
// Ledger from a test of its own. Not its job: what happens to a store when a
// process dies or a disk fills up; only the implementation can provoke that. It
// imports agentic, client, go-cmp and testing.
package storetest
