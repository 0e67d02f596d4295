package ticket

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/agentic-go/agentic/postgres"
	"github.com/agentic-go/agentic/service"
)

// postgresSchema has all tables of the service, those of package postgres too.
const postgresSchema = "agentic_ticket"

// Owner and subject are bytea: text cannot hold U+0000, and would be compared by
// the collation.
const postgresTicket = `
CREATE TABLE agentic_ticket.ticket (
	id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	owner      bytea NOT NULL,
	request_id text NOT NULL,
	subject    bytea NOT NULL,
	status     text NOT NULL
)`

// connectTimeout is how long one attempt to connect may take, when the URL does
// not say.
const connectTimeout = 5 * time.Second

type postgresDesk struct {
	pool     *pgxpool.Pool
	tracking *postgres.Store
}

func openPostgres(ctx context.Context, url string) (_ *postgresDesk, err error) {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	if cfg.ConnConfig.ConnectTimeout == 0 {
		cfg.ConnConfig.ConnectTimeout = connectTimeout
	}
	d := &postgresDesk{}
	if d.pool, err = pgxpool.NewWithConfig(ctx, cfg); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = d.close()
		}
	}()
	if err := postgres.Migrate(ctx, d.pool, postgresSchema); err != nil {
		return nil, err
	}
	if err := pgx.BeginFunc(ctx, d.pool, func(tx pgx.Tx) error { return makeTable(ctx, tx) }); err != nil {
		return nil, err
	}
	if d.tracking, err = postgres.NewStore(ctx, postgres.StoreConfig{Pool: d.pool, Schema: postgresSchema}); err != nil {
		return nil, err
	}
	return d, nil
}

// makeTable makes the table of tickets, once for any number of hosts: the lock on
// the table of migrations keeps them apart.
func makeTable(ctx context.Context, tx pgx.Tx) error {
	const there = "SELECT to_regclass('agentic_ticket.ticket') IS NOT NULL"
	var made bool
	if err := tx.QueryRow(ctx, there).Scan(&made); err != nil || made {
		return err
	}
	if _, err := tx.Exec(ctx, "LOCK TABLE agentic_ticket.migration IN EXCLUSIVE MODE"); err != nil {
		return err
	}
	if err := tx.QueryRow(ctx, there).Scan(&made); err != nil || made {
		return err
	}
	_, err := tx.Exec(ctx, postgresTicket)
	return err
}

func (d *postgresDesk) store() service.Store[pgx.Tx] { return d.tracking }

func (d *postgresDesk) add(ctx context.Context, tx pgx.Tx, k service.Key, subject string) (id int64, err error) {
	err = tx.QueryRow(ctx, "INSERT INTO agentic_ticket.ticket (owner, request_id, subject, status) VALUES ($1, $2, $3, $4) RETURNING id",
		[]byte(k.Principal), k.RequestID, []byte(subject), statusOpen).Scan(&id)
	return id, err
}

func (d *postgresDesk) find(ctx context.Context, owner string, id int64) (t row, found bool, err error) {
	var subject []byte
	err = d.pool.QueryRow(ctx, "SELECT request_id, subject, status FROM agentic_ticket.ticket WHERE id = $1 AND owner = $2", id, []byte(owner)).
		Scan(&t.requestID, &subject, &t.status)
	if errors.Is(err, pgx.ErrNoRows) {
		return row{}, false, nil
	}
	t.subject = string(subject)
	return t, err == nil, err
}

func (d *postgresDesk) count(ctx context.Context) (tickets, requests int, err error) {
	err = d.pool.QueryRow(ctx, "SELECT (SELECT count(*) FROM agentic_ticket.ticket), (SELECT count(*) FROM agentic_ticket.tracked_request)").
		Scan(&tickets, &requests)
	return tickets, requests, err
}

func (d *postgresDesk) ping(ctx context.Context) error { return d.pool.Ping(ctx) }

func (d *postgresDesk) close() error {
	d.pool.Close()
	return nil
}
