// Package place finds the ledger that a place names: a file, or the URL of a
// PostgreSQL database.
//
// Its job is to read the name, to open, make, migrate and check the ledger there,
// to give turns to processes that share it, and to say what to do when one of these
// fails. A password in a URL is used and never shown: no String, error or remedy of
// this package has it.
//
// Not its job: what a ledger does with a request, flags and the terminal. It makes
// no tables in PostgreSQL unless Migrate is called.
//
// It imports client, sqlite, postgres, fleet, internal/advice, internal/escape and
// internal/filelock, and pgx for the connections.
package place
