// Package archtest holds the tests that keep the house in shape: which package
// may import which, what a package may not use, how large things may grow, and
// that the documents and the Makefile name what is there.
//
// It has no code of its own: every rule is a function from a source tree to
// findings, runs over this module, and runs over small made-up trees that break
// it, so that no rule can stop working in silence. The tables that a new package
// or dependency needs a line in are in tables_test.go.
//
// Not its job: what gofmt, go vet and staticcheck see. It imports the standard
// library only and runs the go command.
package archtest
