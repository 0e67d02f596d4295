package storetest_test

import (
	"testing"
	"time"

	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/storetest"
)

func TestMemory(t *testing.T) {
	storetest.Ledger(t, func(*testing.T) storetest.LedgerStore {
		m := storetest.NewMemory(nil)
		return storetest.LedgerStore{
			Open:     func(_ *testing.T, clock func() time.Time) client.Ledger { return m.Handle(clock) },
			TakeOver: func(_ *testing.T, scope client.Scope, id string) { m.TakeOver(scope, id) },
		}
	})
}
