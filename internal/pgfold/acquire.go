package pgfold

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// acquireTime bounds one wait for a connection.
const acquireTime = 5 * time.Second

// noConnection says that there was none in time.
type noConnection struct{ error }

func (e noConnection) Unwrap() error { return e.error }

// Acquire takes a connection. A pool asks one that was idle whether it still stands,
// and one that was cut off without a word never answers: that is given up after a few
// seconds, with an error that is Retryable, and so is the wait for a pool that is empty.
func Acquire(ctx context.Context, pool *pgxpool.Pool) (*pgxpool.Conn, error) {
	limited, cancel := context.WithTimeout(ctx, acquireTime)
	defer cancel()
	conn, err := pool.Acquire(limited)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		err = noConnection{err}
	}
	return conn, err
}
