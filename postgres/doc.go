// Package postgres keeps what this module remembers in PostgreSQL, version 13 or
// newer: for publishers the tracking of their requests, in the database of their own
// rows, and for agent hosts the ledger of theirs, for a whole fleet.
//
// # Store
//
// A service.Store over pgx (Store, whose transactions are pgx.Tx) and one over
// database/sql with pgx's driver (SQLStore, *sql.Tx), with the same tables and the
// same SQL. Its job is that a request ID, the principal, the action, the digest of the
// input and the result commit together with the publisher's rows (section 5, D21),
// that concurrent repeats wait for the first (D22), and that what is past its
// window is told from what never was (D23). Times are the database's clock. Keys
// are compared by the SHA-256 of their bytes: no collation, no limit of length.
//
// A claim that is not settled in its transaction cannot be committed: a deferred
// constraint of the table, claim_is_settled, refuses it, also in a transaction of
// the publisher's own. So SET CONSTRAINTS ALL IMMEDIATE fails between the two; name
// the publisher's constraints instead.
//
// # Ledger
//
// A desk.Ledger that any number of hosts share (section 6). Its job is that a
// request ID names one request, that it is attempted once in the whole fleet, that
// one hold at a time works on it, and that what was observed stays.
//
// A hold is a lease in the request's row, by the database's clock, and a fence that
// each takeover raises; every later write of the hold compares both in its own
// statement, so that a host that was paused past its lease changes nothing when it
// wakes, and its right to submit is gone by its own clocks before that. One goroutine
// renews the leases of a Ledger, never beyond a request's Term. No session, lock or
// connection belongs to a hold: thousands are in flight over a small pool, of any
// QueryExecMode, also through a pooler that shares sessions.
//
// A new request that is executed costs two round trips, Begin and Finish. Writes of
// one process that wait at the same time are one statement and one commit. Each is
// recognized by a number of its hold's own, and made again when its answer was lost or
// the server restarts, so most requests do not notice; what cannot be known is told as
// that.
//
// # Tables
//
// Migrate makes those of a store and MigrateLedger those of a ledger, in a schema of
// their own; both need the rights for that. The role that serves needs less:
//
//	GRANT USAGE ON SCHEMA agentic TO app;
//	GRANT SELECT ON agentic.migration TO app;
//	GRANT SELECT, INSERT, UPDATE, DELETE ON agentic.tracked_request TO app;
//
// and for a ledger, whose tables themselves refuse to change a binding or to take an
// attempt back:
//
//	GRANT USAGE ON SCHEMA agentic TO host;
//	GRANT SELECT ON agentic.ledger_migration TO host;
//	GRANT SELECT, INSERT, UPDATE, DELETE ON agentic.ledger_snapshot,
//	    agentic.ledger_request, agentic.ledger_entry, agentic.ledger_note TO host;
//
// What LedgerConfig.Enqueue does needs rights of its own; for jobs package fleet names
// them.
//
// Not its job: the publisher's tables, the jobs that LedgerConfig.Enqueue makes, and
// the settings of the server, at which CheckLedger looks. With fsync off, or on a
// standby that is promoted without the last commits, an answered submission can be
// lost, and an attempt forgotten; synchronous_commit = off is overridden in the
// transactions of this package. A transaction of a host that was paused or cut off is
// given up after 5 s; only when that happened in the middle of a message does the
// server wait for tcp_keepalives_idle, which is two hours unless it is set, and what
// that transaction had locked waits too: set it to a minute.
//
// It imports agentic, client, service, internal/savedform, internal/lease,
// internal/pgcheck, internal/pgfold, internal/pgmigrate and pgx.
package postgres
