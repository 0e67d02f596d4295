package place

import (
	"context"
	"errors"

	"github.com/agentic-go/agentic/postgres"
)

func (p Place) migratePostgres(ctx context.Context) (int, error) {
	pool, err := p.pool()
	if err != nil {
		return 0, p.failure("migrate", err)
	}
	defer pool.Close()
	if err := postgres.MigrateLedger(ctx, pool, p.schema); err != nil {
		return 0, p.failure("migrate", err)
	}
	return 0, nil
}

func (p Place) checkPostgres(context.Context) ([]Finding, error) {
	return nil, p.failure("check", errors.New("PostgreSQL is not wired yet"))
}
