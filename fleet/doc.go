// Package fleet spreads the work of package reconcile over hosts, by the jobs of
// github.com/riverqueue/river in the PostgreSQL database of the ledger.
//
// A job is made in the transaction of the ledger's own write (Enqueuer), so a crash
// cannot lose it; it says which request, in which state, and nothing else. A job
// whose request has moved on does nothing. A worker finds by Ledger.Sweep what has no
// job: what a crashed host left, and jobs that were lost. The ledger's hold, not the
// job, keeps two executions apart, so a job that River gives out twice does no harm.
//
//	Finish (pending, unknown) ──► job at NextCheck ──► reconcile.Worker.One ──► Finish ...
//	crashed host ──► Sweep ──────►      ▲                    │
//	                                    └── snoozed ◄── held, or its origin at a limit or down
//
// Each scope has a queue of its own, so a worker gets only what it has the
// credentials for. No input, receipt, credential or text of a service is in a job, in
// an error that River keeps, or in a log.
//
// Not its job: executing (package reconcile), and the tables of the ledger (package
// postgres). It imports both, and client.
package fleet
