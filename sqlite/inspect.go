package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// errForeign is what another program keeps at the place of a ledger.
var errForeign = fmt.Errorf("%w: it holds something else, and is left as it is", ErrCorrupt)

// smallestPage is the size of the smallest database of SQLite that is not empty.
const smallestPage = 512

// look opens a file that is there for looking at. Where its folder may not be
// written to, SQLite cannot make the files that readers share with writers; without
// a -wal there is no writer, and the file is read as it stands; how tells which.
func look(ctx context.Context, path string) (db *sql.DB, how access, err error) {
	try := func(how access) (*sql.DB, error) {
		db, err := sql.Open("sqlite", dsn(path, how))
		if err != nil {
			return nil, err
		}
		var n int
		if err := db.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_schema`).Scan(&n); err != nil {
			_ = db.Close() // the first error counts
			return nil, err
		}
		return db, nil
	}
	how = onlyLook
	if db, err = try(how); reasonOf(err) == ErrReadOnly {
		if _, e := os.Stat(path + "-wal"); errors.Is(e, fs.ErrNotExist) {
			how = standsStill
			db, err = try(how)
		}
	}
	return db, how, err
}

// inspect looks at what is there and changes nothing. It gives the version of the
// schema, 0 for a file that is absent or empty, and refuses a file that is not a
// ledger: nobody's file is made private, locked or migrated by mistake.
func inspect(ctx context.Context, path string) (version int64, err error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0 {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	if info.Size() < smallestPage {
		return 0, errForeign // SQLite would take it for an empty file
	}
	db, _, err := look(ctx, path)
	if err != nil {
		return 0, err
	}
	defer db.Close()
	var tables int
	if err := db.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_schema`).Scan(&tables); err != nil {
		return 0, err
	}
	if version, err = ledgerSchema.found(ctx, db); err == nil && version == 0 && tables > 0 {
		// Goose makes its own table first, with version 0 in it.
		known, e := ledgerSchema.known(ctx, db)
		if err = e; e == nil && !known {
			err = errForeign
		}
	}
	if err == nil && version > schemaVersion {
		err = ledgerSchema.newer(version)
	}
	return version, err
}
