package place

import (
	"context"

	"github.com/agentic-go/agentic/sqlite"
)

// Migrate makes the tables of a ledger, or brings those of an older version forward,
// and gives the version that they have now. In a database it also makes those of the
// job engine. Doing it again changes nothing. The error is one of Open.
func (p Place) Migrate(ctx context.Context) (version int, err error) {
	if p.config != nil {
		return p.migratePostgres(ctx)
	}
	l, err := sqlite.Open(ctx, sqlite.Config{Path: p.path})
	if err != nil {
		return 0, err
	}
	return sqlite.LedgerVersion, l.Close()
}
