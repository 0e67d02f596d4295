package place

import (
	"context"
	"fmt"

	"github.com/agentic-go/agentic/sqlite"
)

// Migrate makes the tables of a ledger, or brings those of an older version forward,
// and says which version they have now. In a database it also makes those of the
// job engine. Doing it again changes nothing. The error is one of Open.
func (p Place) Migrate(ctx context.Context) (version string, err error) {
	if p.config != nil {
		return p.migratePostgres(ctx)
	}
	l, err := sqlite.Open(ctx, sqlite.Config{Path: p.path})
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("version %d", sqlite.LedgerVersion), l.Close()
}
