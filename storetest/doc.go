// Package storetest has the suite that every service.Store must pass, and one in
// memory for tests.
//
// Its job is to say in code what the contract means: what commits with the
// publisher's rows, who waits for a claim, what settles once, which keys are the
// same, and what is left after the window. An implementation calls Store from a
// test of its own. Not its job: what happens to a store when a process dies or a
// disk fills up; only the implementation can provoke that. It imports service,
// go-cmp and testing.
package storetest
