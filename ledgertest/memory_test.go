package ledgertest_test

import (
	"testing"
	"time"

	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/desk"
	"github.com/agentic-go/agentic/ledgertest"
)

func TestMemory(t *testing.T) {
	ledgertest.Ledger(t, func(*testing.T) ledgertest.LedgerStore {
		m := ledgertest.NewMemory(nil)
		return ledgertest.LedgerStore{
			Open:     func(_ *testing.T, clock func() time.Time) desk.Ledger { return m.Handle(clock) },
			TakeOver: func(_ *testing.T, scope client.Scope, id string) { m.TakeOver(scope, id) },
		}
	})
}
