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
// Migrate makes River's tables, and needs the rights for that. Each host whose ledger
// has an Enqueuer, and each worker, needs less; Look says what a role lacks:
//
//	GRANT USAGE ON SCHEMA agentic TO host;
//	GRANT SELECT ON agentic.river_migration TO host;
//	GRANT SELECT, INSERT, UPDATE, DELETE ON agentic.river_job, agentic.river_leader,
//	    agentic.river_queue, agentic.river_notification TO host;
//	GRANT USAGE ON SEQUENCE agentic.river_job_id_seq, agentic.river_notification_id_seq TO host;
//
// A host that may not make jobs still saves its receipts; a worker that may settles
// what they leave open, when it is due.
//
// Not its job: executing (package reconcile), and the tables of the ledger (package
// postgres). It imports both, and client.
package fleet
