// Package postgres keeps the tracking of a publisher in its own PostgreSQL
// database, version 13 or newer: a service.Store over pgx (Store, whose
// transactions are pgx.Tx) and one over database/sql with pgx's driver (SQLStore,
// *sql.Tx), with the same tables and the same SQL.
//
// Its job is that a request ID, the principal, the action, the digest of the
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
// Migrate makes the tables, in a schema of their own, and needs the rights for
// that. The role that serves needs less:
//
//	GRANT USAGE ON SCHEMA agentic TO app;
//	GRANT SELECT ON agentic.migration TO app;
//	GRANT SELECT, INSERT, UPDATE, DELETE ON agentic.tracked_request TO app;
//
// Not its job: the publisher's tables and the settings of the server. With fsync
// off, or on a standby that is promoted without the last commits, an answered
// submission can be lost; synchronous_commit = off is overridden in the
// transactions that track a request.
//
// It imports service, pgx and goose.
package postgres
