// Package storetest has the suites that every client.Ledger and every
// service.Store must pass, and one of each in memory for tests.
//
// Its job is to say in code what the two contracts mean. Of a Ledger: what a
// request ID binds, who may submit, who waits, what is never overwritten, and
// what two handles on one store see of each other. Of a Store: what commits with
// the publisher's rows, who waits for a claim, what settles once, which keys are
// the same, and what is left after the window. An implementation calls Ledger or
// Store from a test of its own. Not its job: what happens to a store when a
// process dies or a disk fills up; only the implementation can provoke that. It
// imports agentic, client, service, go-cmp and testing.
package storetest
