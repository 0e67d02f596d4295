package place

import (
	"context"

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
		list = append(list, Finding{Name: f.Name, Level: string(f.Level), Value: f.Value, Detail: f.Detail, Remedy: f.Remedy})
	}
	queued, err := fleet.Migrated(ctx, pool, p.schema)
	if err != nil {
		return nil, p.failure("check", err)
	}
	engine := Finding{Name: "job engine", Level: "ok", Value: "has its tables"}
	if !queued {
		engine.Level, engine.Value, engine.Detail = "warning", "has no tables", "each worker asks the ledger for what is due, by itself"
		engine.Remedy = p.command("agentic ledger migrate")
	}
	return append(list, engine), nil
}
