package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
)

// Stands reports whether a request is still as it was when d was made for it: it has
// a NextCheck, and nothing has been written about it since. A worker whose job does
// not stand has nothing to do. It is one round trip. d.Scope, d.RequestID and
// d.Entries count.
func (l *Ledger) Stands(ctx context.Context, d Due) (stands bool, err error) {
	if err := l.usable(ctx); err != nil {
		return false, ledgerError("look", err)
	}
	key := keyOfRequest(d.Scope, d.RequestID)
	err = l.ofOne(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		err := conn.QueryRow(ctx, l.named(`SELECT next_check IS NOT NULL AND entries = $2::bigint FROM {schema}.ledger_request WHERE key = $1::bytea`),
			key[:], d.Entries).Scan(&stands)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		return err
	})
	return stands, ledgerError("look", err)
}
