// Package reconcile settles what is open by reading only: requests whose host
// crashed, and those that are pending or unknown inside their tracking window
// (section 6.5 and 6.9 of the draft).
//
// A Worker takes what a ledger says is due, executes it with client.Resume, and
// keeps to limits per origin, so that it never floods a service: executions at
// once, executions per second, and a back-off while the origin does not answer.
// Several workers may share a ledger; its holds keep them apart. When a request is
// read again, and when its window closes, is the ledger's to say
// (client.NextCheck): what a Worker remembers is only what it could not do now.
//
//	due ──► admitted by its origin ──► Resume ──► verified | failed   final
//	 ▲            │ at a limit, or down      ├──► pending | unknown  due again later
//	 └── later ◄──┴──────────── held ◄───────┴──► window has ended   a person's
//
// Not its job: sending anything (no path from here submits), deciding an outcome,
// spreading work over hosts (package fleet does), or asking a person. It imports
// the packages agentic and client.
package reconcile
