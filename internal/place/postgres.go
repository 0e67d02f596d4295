package place

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/agentic-go/agentic/fleet"
	"github.com/agentic-go/agentic/postgres"
)

func (p Place) migratePostgres(ctx context.Context) (string, error) {
	pool, err := p.pool(0)
	if err != nil {
		return "", p.failure("migrate", err)
	}
	defer pool.Close()
	if err := postgres.MigrateLedger(ctx, pool, p.schema); err != nil {
		return "", p.failure("migrate", err)
	}
	if err := fleet.Migrate(ctx, pool, p.schema); err != nil {
		return "", p.failure("migrate", err)
	}
	found, err := postgres.CheckLedger(ctx, pool, p.schema)
	if err != nil {
		return "", p.failure("migrate", err)
	}
	return found[0].Value, nil // its tables come first
}

func (p Place) checkPostgres(ctx context.Context) ([]Finding, error) {
	pool, err := p.pool(0)
	if err != nil {
		return nil, p.failure("check", err)
	}
	defer pool.Close()
	found, err := postgres.CheckLedger(ctx, pool, p.schema)
	if err != nil {
		return nil, p.failure("check", err)
	}
	list := make([]Finding, 0, len(found)+1)
	for _, f := range found {
		if strings.HasSuffix(f.Remedy, postgres.Migration) {
			f.Remedy = strings.TrimSuffix(f.Remedy, postgres.Migration) + p.command(postgres.Migration)
		}
		if f.Name == "pool" && !p.sized {
			f.Value = fmt.Sprintf("at most %d connections, of a worker %d", pool.Config().MaxConns, WorkerConns(math.MaxInt))
		}
		list = append(list, Finding{Name: f.Name, Level: string(f.Level), Value: f.Value, Detail: f.Detail, Remedy: f.Remedy})
	}
	jobs, err := fleet.Look(ctx, pool, p.schema)
	if err != nil {
		return nil, p.failure("check", err)
	}
	return append(list, p.engine(jobs)), nil
}

// engine is what was found of the job engine. Without it the ledger works, and its
// workers ask it for what is due.
func (p Place) engine(t fleet.Tables) Finding {
	f := Finding{Name: "job engine", Level: "ok", Value: fmt.Sprintf("version %d in schema %s", t.Version, p.schema)}
	alone := "each worker asks the ledger for what is due, by itself"
	switch {
	case !t.There:
		f.Level, f.Value, f.Detail = "warning", "has no tables", alone
		f.Remedy = p.command(postgres.Migration)
	case len(t.Closed) > 0:
		f.Level, f.Value = problem, "not usable by this role"
		f.Detail = "this role has not all rights on " + strings.Join(t.Closed, ", ") + ": it makes no jobs, and a worker of it settles nothing"
		f.Remedy = "Grant USAGE on the schema and on its sequences, and SELECT, INSERT, UPDATE and DELETE on its tables, as docs/hosts.md has it."
	case t.Version < t.Wanted:
		f.Level, f.Detail = "warning", fmt.Sprintf("this program needs version %d; until then %s", t.Wanted, alone)
		f.Remedy = p.command(postgres.Migration)
	}
	return f
}

// WorkerConns is how many connections a worker needs beside what its URL says, for so
// many executions at once: River has a few loops of its own, and one connection for
// notifications.
func WorkerConns(concurrency int) int { return 6 + min(concurrency, 16) }
