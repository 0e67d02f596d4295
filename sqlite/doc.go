// Package sqlite keeps the ledger of an agent host in one SQLite file: the
// embedded default, for every process and container of one machine. For
// publishers it has a tracking store as well.
//
// Its first job is client.Ledger: what a request ID is bound to, who may submit
// it, who executes it now, and every observation and receipt. A commit is on
// stable storage before a call returns (section 6.2, 6.3 and 6.7, D8, D9). Whoever
// executes a request holds a lock of the kernel that ends with its process, and a
// fence number that ends its writes when that lock was lost all the same.
//
// For people it keeps their notes, and it purges what is settled and old: then only
// a tombstone stays, and what was removed is overwritten in the file.
//
// Not its job: more than one machine (no network file system), or encrypting the
// file; inputs and receipts in it can be sensitive (section 7).
//
// Beside PATH stand PATH-wal and PATH-shm, which belong to SQLite, and PATH.lock,
// which must never be deleted while a process has the ledger open: two processes
// with different lock files do not exclude each other. On systems other than
// Linux and Windows it is a directory, PATH.locks.
//
// For publishers it has a second, separate part: Store, a service.Store in the
// publisher's own SQLite database (section 5, D19 to D23), with Migrate for its
// tables and DSN for connections that are safe. It opens no file of its own, and
// nothing of the ledger is in that database.
//
// It imports agentic, client, service, internal/savedform, internal/privatefile,
// internal/filelock for the lock of a request, internal/groupcommit for its writes,
// modernc.org/sqlite (no cgo) and goose for migrations.
package sqlite
