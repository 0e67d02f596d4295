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
	schemaVersion  = 1
	migrationTable = "agentic_ledger_migration"
)

// migrate brings the schema to schemaVersion, only ever forward. When it is there
// already, which two small queries tell, goose is not started.
func migrate(ctx context.Context, db *sql.DB) error {
	found, err := versionOf(ctx, db)
	switch {
	case err != nil || found == schemaVersion:
		return err
	case found > schemaVersion:
		return newer(found)
	}
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	p, err := goose.NewProvider(goose.DialectSQLite3, db, files, goose.WithTableName(migrationTable),
		goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))
	if err != nil {
		return err
	}
	_, err = p.Up(ctx)
	return err
}

func newer(version int64) error {
	return fmt.Errorf("%w: its schema is %d, this program knows %d", ErrNewer, version, schemaVersion)
}

func hasMigrations(ctx context.Context, db *sql.DB) (known bool, err error) {
	err = db.QueryRowContext(ctx, `SELECT count(*) > 0 FROM sqlite_schema WHERE type = 'table' AND name = ?`, migrationTable).Scan(&known)
	return known, err
}

func versionOf(ctx context.Context, db *sql.DB) (version int64, err error) {
	if known, err := hasMigrations(ctx, db); err != nil || !known {
		return 0, err
	}
	err = db.QueryRowContext(ctx, `SELECT coalesce(max(version_id), 0) FROM `+migrationTable+` WHERE is_applied`).Scan(&version)
	return version, err
}
