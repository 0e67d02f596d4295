package place

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/internal/filelock"
)

// turnConns bounds the connections that wait for their turn in a database. They are
// apart from those of the ledger, which who has the turn needs.
const turnConns = 4

// Turns lets one caller at a time have the turn in what a name says, over all
// processes that use a ledger: on this machine for a file, and everywhere for a
// database. The turn of who dies is given on.
type Turns struct {
	table  *filelock.Table // of a file
	pool   *pgxpool.Pool   // of a database
	schema string
}

// Turns makes the Turns of a ledger. The caller must Close them.
func (l *Ledger) Turns(ctx context.Context) (*Turns, error) {
	p := l.place
	if l.Pool == nil {
		table, err := filelock.Open(p.path)
		if err != nil {
			return nil, &client.LedgerError{Op: "open", Err: err}
		}
		return &Turns{table: table}, nil
	}
	cfg := l.Pool.Config()
	cfg.MinConns, cfg.MinIdleConns, cfg.MaxConns = 0, 0, turnConns
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, p.failure("open", err)
	}
	return &Turns{pool: pool, schema: l.Schema}, nil
}

// Close gives free whatever is held.
func (t *Turns) Close() error {
	if t.pool != nil {
		t.pool.Close()
		return nil
	}
	return t.table.Close()
}

// Take waits for the turn until ctx ends. The error matches client.ErrLedger, or is
// that of ctx.
func (t *Turns) Take(ctx context.Context, name ...string) (release func(), err error) {
	key := filelock.KeyOf(append([]string{"turn", t.schema}, name...)...)
	if t.pool == nil {
		if err := t.table.Acquire(ctx, key, time.Hour); err != nil {
			return nil, t.failure(ctx, err)
		}
		return func() { _ = t.table.Release(key) }, nil // else it is free when this process ends
	}
	tx, err := t.pool.Begin(ctx)
	if err != nil {
		return nil, t.failure(ctx, err)
	}
	end := func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_ = tx.Rollback(ctx) // there is nothing to lose but the turn
	}
	if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", int64(key)); err != nil {
		end()
		return nil, t.failure(ctx, err)
	}
	return end, nil
}

func (t *Turns) failure(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(err, client.ErrLedger) {
		return err
	}
	return &client.LedgerError{Op: "take turns", Err: err}
}
