package fleet

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/postgres"
	"github.com/agentic-go/agentic/reconcile"
)

// Config is what a host gives a Fleet. Pool, Worker, Ledger and Scopes are required;
// the zero value of everything else is safe.
type Config struct {
	// Pool is River's: of the ledger's database, and it may be the ledger's own. It
	// needs one connection for each of a few loops beside what executions need, and
	// unless PollOnly keeps one for notifications.
	Pool   *pgxpool.Pool
	Schema string // of River's tables; "" is "agentic"

	// Worker executes. Its Scopes are not used here, its limits are.
	Worker *reconcile.Worker

	// Ledger is where the requests are. It was opened with Enqueuer, of the same
	// schema.
	Ledger *postgres.Ledger

	// Scopes say whose requests; Worker's client has the credentials of each.
	Scopes []client.Scope

	Concurrency int // executions at once, of all scopes; 0 is 8

	// PollOnly does without LISTEN, which a pooler that shares sessions between
	// transactions does not carry. Jobs are then found a little later.
	PollOnly bool

	// Grace is how long Run lets executions go on after its context has ended; 0 is
	// 30 s.
	Grace time.Duration

	// Rescue is how long a job is left to a worker that does not end it, before
	// another gets it: what a crashed worker had waits so long. An execution that
	// lasts longer is not ended; it has the hold, and the job waits for it. 0 is
	// 2 min.
	Rescue time.Duration

	// Sweep is how often the ledger is asked for what is due and has no job; 0 is
	// 5 s.
	Sweep time.Duration

	// Logger gets a few lines for operators, of names and numbers; an error of the
	// database is among them. Nil is silent.
	Logger *slog.Logger
}

const (
	defaultConcurrency = 8
	defaultGrace       = 30 * time.Second
	defaultRescue      = 2 * time.Minute
	defaultSweep       = 5 * time.Second

	// sweepPage bounds one transaction of a sweep.
	sweepPage = 500

	// sweepTime bounds it too: a connection that was cut off without a word never
	// answers.
	sweepTime = time.Minute

	// fetchInterval is how often River looks for jobs that it put off for a moment, as
	// for the rate of an origin: not much less often than an origin's default limits
	// let executions begin.
	fetchInterval = 250 * time.Millisecond

	// stopTime is how long cancelled executions may take to write down what they
	// saw, and River to write down its jobs.
	stopTime = time.Minute
)

// Fleet is one host's part in the work.
type Fleet struct{ cfg Config }

// New makes a Fleet. The error says which part of the Config is unusable.
func New(c Config) (*Fleet, error) {
	switch {
	case c.Pool == nil:
		return nil, errors.New("fleet: Config.Pool is missing")
	case c.Worker == nil:
		return nil, errors.New("fleet: Config.Worker is missing")
	case c.Ledger == nil:
		return nil, errors.New("fleet: Config.Ledger is missing")
	case len(c.Scopes) == 0:
		return nil, errors.New("fleet: Config.Scopes is empty")
	}
	c.Schema = schemaOf(c.Schema)
	if c.Concurrency <= 0 {
		c.Concurrency = defaultConcurrency
	}
	for _, d := range []struct {
		of   *time.Duration
		zero time.Duration
	}{{&c.Grace, defaultGrace}, {&c.Rescue, defaultRescue}, {&c.Sweep, defaultSweep}} {
		if *d.of <= 0 {
			*d.of = d.zero
		}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	f := &Fleet{c}
	if _, err := f.client(context.Background(), context.Background()); err != nil {
		return nil, err
	}
	return f, nil
}

// client makes River's client: of jobs that begin until one context ends, and of
// executions that have the other.
func (f *Fleet) client(stop, work context.Context) (*river.Client[pgx.Tx], error) {
	workers := river.NewWorkers()
	w := &worker{cfg: &f.cfg, stop: stop, work: work, free: make(chan struct{}, f.cfg.Concurrency)}
	if err := river.AddWorkerSafely(workers, w); err != nil {
		return nil, fmt.Errorf("fleet: %w", err)
	}
	queues := map[string]river.QueueConfig{}
	for _, s := range f.cfg.Scopes {
		queues[Queue(s)] = river.QueueConfig{MaxWorkers: f.cfg.Concurrency}
	}
	c, err := river.NewClient(riverpgxv5.New(f.cfg.Pool), &river.Config{
		Schema: f.cfg.Schema, Queues: queues, Workers: workers, PollOnly: f.cfg.PollOnly,
		FetchPollInterval: fetchInterval, JobTimeout: f.cfg.Rescue, RescueStuckJobsAfter: f.cfg.Rescue, CompletedJobRetentionPeriod: time.Hour,
		Logger: slog.New(namesAndNumbers{newSeldom(f.cfg.Logger.Handler())}),
	})
	if err != nil {
		return nil, fmt.Errorf("fleet: %w", err)
	}
	return c, nil
}

// Run takes jobs of the scopes' queues and executes them, and sweeps the ledger, until
// ctx ends. Then no new job begins, and what runs may go on for Config.Grace before it
// is cancelled: its request stays open, and its job goes to the next worker.
//
// The error is that River could not be started, as with tables that are not there
// (Migrate), or could not be stopped in time. A database that goes away later is
// waited for.
func (f *Fleet) Run(ctx context.Context) error {
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	c, err := f.client(ctx, work)
	if err != nil {
		return err
	}
	impatient := context.AfterFunc(ctx, cancel) // a database that does not answer
	if err := c.Start(work); err != nil {
		return fmt.Errorf("fleet: %w", err)
	}
	if impatient() {
		f.sweep(ctx)
	}
	grace, end := context.WithTimeout(context.WithoutCancel(ctx), f.cfg.Grace)
	defer end()
	if err := c.Stop(grace); err == nil {
		return nil
	}
	f.cfg.Logger.Warn("executions are cancelled after the grace period")
	stop, end := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
	defer end()
	cancel()
	if err := c.StopAndCancel(stop); err != nil {
		return fmt.Errorf("fleet: River does not stop: %w", err)
	}
	return nil
}

// sweep has jobs made for what has none, until ctx ends. Hosts sweep at different
// times.
func (f *Fleet) sweep(ctx context.Context) {
	fails := 0
	for {
		pause := f.cfg.Sweep
		limited, cancel := context.WithTimeout(ctx, sweepTime)
		n, err := f.cfg.Ledger.Sweep(limited, f.cfg.Scopes, sweepPage)
		cancel()
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			if fails++; fails == 1 {
				f.cfg.Logger.Error("the ledger cannot be swept", "error", err)
			}
		case fails > 0:
			f.cfg.Logger.Info("the ledger can be swept again")
			fails = 0
		}
		if n > 0 {
			f.cfg.Logger.Info("jobs were made for what had none", "jobs", n)
		}
		if n == sweepPage {
			pause = 0
		}
		timer := time.NewTimer(pause + time.Duration((rand.Float64()-0.5)*0.4*float64(pause)))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

// Migrate makes or updates River's tables in a schema that is there ("" is
// "agentic"; postgres.MigrateLedger makes it), only ever forward. Any number of hosts
// may call it at once. It opens two connections of its own, as pool does, and holds an
// advisory lock of a session, so they must not go through a pooler that shares
// sessions.
func Migrate(ctx context.Context, pool *pgxpool.Pool, schema string) error {
	if err := migrate(ctx, pool, schemaOf(schema)); err != nil {
		return fmt.Errorf("fleet: migrate: %w", err)
	}
	return nil
}

func migrate(ctx context.Context, pool *pgxpool.Pool, schema string) error {
	// Those who wait for the lock take no connection from who has it.
	own := pool.Config()
	own.MaxConns, own.MinConns, own.MinIdleConns = 2, 0, 0
	two, err := pgxpool.NewWithConfig(ctx, own)
	if err != nil {
		return err
	}
	defer two.Close() // and with it the lock
	m, err := migrator(two, schema)
	if err != nil {
		return err
	}
	conn, err := two.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	sum := sha256.Sum256([]byte("github.com/agentic-go/agentic/fleet migrate " + schema))
	if _, err := conn.Exec(ctx, `SELECT pg_advisory_lock($1::bigint)`, int64(binary.BigEndian.Uint64(sum[:8]))); err != nil {
		return err
	}
	_, err = m.Migrate(ctx, rivermigrate.DirectionUp, nil)
	return err
}

// Migrated reports whether River's tables in a schema ("" is "agentic") are as this
// program needs them.
func Migrated(ctx context.Context, pool *pgxpool.Pool, schema string) (bool, error) {
	m, err := migrator(pool, schemaOf(schema))
	if err != nil {
		return false, fmt.Errorf("fleet: %w", err)
	}
	res, err := m.Validate(ctx, nil)
	if err != nil {
		return false, fmt.Errorf("fleet: %w", err)
	}
	return res.OK, nil
}

// Tables is what there is of River's tables in a schema.
type Tables struct {
	There   bool
	Version int      // the last of River's migrations that was made; 0 when it cannot be read
	Wanted  int      // the one that this program needs
	Closed  []string // tables and sequences on which this role has not all the rights it needs
}

// Look sees what there is of River's tables in a schema ("" is "agentic"), and changes
// nothing. The error is that the database cannot be asked.
func Look(ctx context.Context, pool *pgxpool.Pool, schema string) (Tables, error) {
	t, err := look(ctx, pool, schemaOf(schema))
	if err != nil {
		return Tables{}, fmt.Errorf("fleet: %w", err)
	}
	return t, nil
}

func look(ctx context.Context, pool *pgxpool.Pool, schema string) (t Tables, err error) {
	m, err := migrator(pool, schema)
	if err != nil {
		return t, err
	}
	for _, v := range m.AllVersions() {
		t.Wanted = max(t.Wanted, v.Version)
	}
	err = pool.QueryRow(ctx, `SELECT count(*) > 0, coalesce(array_agg(relname ORDER BY relname) FILTER (WHERE NOT may), '{}')
FROM (SELECT c.relname::text, has_schema_privilege(n.oid, 'USAGE') AND CASE
		WHEN c.relkind = 'S' THEN has_sequence_privilege(c.oid, 'USAGE')
		WHEN c.relname = 'river_migration' THEN has_table_privilege(c.oid, 'SELECT')
		ELSE has_table_privilege(c.oid, 'SELECT') AND has_table_privilege(c.oid, 'INSERT')
			AND has_table_privilege(c.oid, 'UPDATE') AND has_table_privilege(c.oid, 'DELETE') END AS may
	FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
	WHERE n.nspname = $1::text AND c.relname LIKE 'river\_%' AND c.relkind IN ('r', 'p', 'S')) r`, schema).Scan(&t.There, &t.Closed)
	if err != nil || slices.Contains(t.Closed, "river_migration") {
		return t, err
	}
	made, err := m.ExistingVersions(ctx)
	for _, v := range made {
		t.Version = max(t.Version, v.Version)
	}
	return t, err
}

func migrator(pool *pgxpool.Pool, schema string) (*rivermigrate.Migrator[pgx.Tx], error) {
	return rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Schema: schema, Logger: slog.New(slog.DiscardHandler)})
}
