package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"
)

//go:embed migrations/*.sql
var migrations embed.FS

// schemaVersion is the highest migration that this program knows. The table of
// applied migrations has a name of its own, so that a file can be shared.
const (
	schemaVersion  = 2
	migrationTable = "agentic_ledger_migration"
)

// schema is a set of tables with migrations of its own.
type schema struct {
	files   fs.FS
	dir     string
	table   string // of the migrations that were applied
	version int64  // the highest that this program knows
}

var ledgerSchema = schema{files: migrations, dir: "migrations", table: migrationTable, version: schemaVersion}

// migrate brings the schema to its version, only ever forward. When it is there
// already, which two small queries tell, goose is not started.
func (s schema) migrate(ctx context.Context, db *sql.DB) error {
	found, err := s.found(ctx, db)
	switch {
	case err != nil || found == s.version:
		return err
	case found > s.version:
		return s.newer(found)
	}
	files, err := fs.Sub(s.files, s.dir)
	if err != nil {
		return err
	}
	p, err := goose.NewProvider(goose.DialectSQLite3, db, files, goose.WithTableName(s.table),
		goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))
	if err != nil {
		return err
	}
	_, err = p.Up(ctx)
	return err
}

func (s schema) newer(found int64) error {
	return fmt.Errorf("%w: its schema is %d, this program knows %d", ErrNewer, found, s.version)
}

// known reports whether any of its migrations was begun.
func (s schema) known(ctx context.Context, db *sql.DB) (known bool, err error) {
	err = db.QueryRowContext(ctx, `SELECT count(*) > 0 FROM sqlite_schema WHERE type = 'table' AND name = ?`, s.table).Scan(&known)
	return known, err
}

// found is the version in the database; 0 is none.
func (s schema) found(ctx context.Context, db *sql.DB) (version int64, err error) {
	if known, err := s.known(ctx, db); err != nil || !known {
		return 0, err
	}
	err = db.QueryRowContext(ctx, `SELECT coalesce(max(version_id), 0) FROM `+s.table+` WHERE is_applied`).Scan(&version)
	return version, err
}
