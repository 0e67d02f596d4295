package ticket

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/agentic-go/agentic/service"
	"github.com/agentic-go/agentic/sqlite"
)

// sqliteVersion is the user_version of the file. Version 1 tracked requests in a
// table of its own.
const sqliteVersion = 2

const sqliteTicket = `
CREATE TABLE ticket (
	id         INTEGER PRIMARY KEY,
	owner      TEXT NOT NULL,
	request_id TEXT NOT NULL,
	subject    TEXT NOT NULL,
	status     TEXT NOT NULL
) STRICT;
PRAGMA user_version = 2;
`

// sqliteConnections bounds the connections. One writes, for all that wait; the
// others read.
const sqliteConnections = 5

type sqliteDesk struct {
	temp     string // directory to remove on close, or ""
	db       *sql.DB
	tracking *sqlite.Store
	insert   *sql.Stmt
	one      *sql.Stmt
}

const (
	insertSQL = "INSERT INTO ticket (owner, request_id, subject, status) VALUES (?, ?, ?, ?)"
	oneSQL    = "SELECT request_id, subject, status FROM ticket WHERE id = ? AND owner = ?"
)

func openSQLite(ctx context.Context, path string, clock func() time.Time) (_ *sqliteDesk, err error) {
	d := &sqliteDesk{}
	defer func() {
		if err != nil {
			_ = d.close() // the first error counts
		}
	}()
	if path == "" {
		if d.temp, err = os.MkdirTemp("", "agentic-ticket-"); err != nil {
			return nil, err
		}
		path = filepath.Join(d.temp, "tickets.db")
	}
	// SQLite would make the file readable for others; -wal and -shm take its mode.
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	dsn, err := sqlite.DSN(path)
	if err != nil {
		return nil, err
	}
	if d.db, err = sql.Open("sqlite", dsn); err != nil {
		return nil, err
	}
	d.db.SetMaxOpenConns(sqliteConnections)
	d.db.SetMaxIdleConns(sqliteConnections)
	if err := d.migrate(ctx); err != nil {
		return nil, fmt.Errorf("database %s: %w", path, err)
	}
	if err := sqlite.Migrate(ctx, d.db); err != nil {
		return nil, fmt.Errorf("database %s: %w", path, err)
	}
	if d.tracking, err = sqlite.OpenStore(ctx, sqlite.StoreConfig{DB: d.db, Clock: clock}); err != nil {
		return nil, fmt.Errorf("database %s: %w", path, err)
	}
	if d.insert, err = d.db.PrepareContext(ctx, insertSQL); err != nil {
		return nil, err
	}
	if d.one, err = d.db.PrepareContext(ctx, oneSQL); err != nil {
		return nil, err
	}
	return d, nil
}

// migrate makes the table in an empty database and refuses one that is not ours.
func (d *sqliteDesk) migrate(ctx context.Context) error {
	tx, err := d.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	var version, tables int
	err = tx.QueryRowContext(ctx, "SELECT user_version, (SELECT count(*) FROM sqlite_schema) FROM pragma_user_version").Scan(&version, &tables)
	if err != nil {
		return err
	}
	switch {
	case version == 0 && tables == 0:
		if _, err := tx.ExecContext(ctx, sqliteTicket); err != nil {
			return err
		}
		return tx.Commit()
	case version == sqliteVersion:
		return nil
	}
	return fmt.Errorf("not a ticket database of version %d (version %d, %d tables and indexes)", sqliteVersion, version, tables)
}

func (d *sqliteDesk) store() service.Store[*sql.Tx] { return d.tracking }

func (d *sqliteDesk) add(ctx context.Context, tx *sql.Tx, k service.Key, subject string) (int64, error) {
	res, err := tx.StmtContext(ctx, d.insert).ExecContext(ctx, k.Principal, k.RequestID, subject, statusOpen)
	if err != nil {
		return 0, err
	}
	return res.LastInsertId()
}

func (d *sqliteDesk) find(ctx context.Context, owner string, id int64) (t row, found bool, err error) {
	err = d.one.QueryRowContext(ctx, id, owner).Scan(&t.requestID, &t.subject, &t.status)
	if errors.Is(err, sql.ErrNoRows) {
		return row{}, false, nil
	}
	return t, err == nil, err
}

func (d *sqliteDesk) count(ctx context.Context) (tickets, requests int, err error) {
	err = d.db.QueryRowContext(ctx, "SELECT (SELECT count(*) FROM ticket), (SELECT count(*) FROM agentic_request)").Scan(&tickets, &requests)
	return tickets, requests, err
}

func (d *sqliteDesk) ping(ctx context.Context) error {
	var one int
	return d.db.QueryRowContext(ctx, "SELECT 1").Scan(&one)
}

func (d *sqliteDesk) close() error {
	var errs []error
	if d.tracking != nil {
		errs = append(errs, d.tracking.Close())
	}
	if d.db != nil {
		errs = append(errs, d.db.Close())
	}
	if d.temp != "" {
		errs = append(errs, os.RemoveAll(d.temp))
	}
	return errors.Join(errs...)
}
