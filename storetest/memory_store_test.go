package storetest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/agentic-go/agentic/ledgertest"
	"github.com/agentic-go/agentic/service"
	"github.com/agentic-go/agentic/storetest"
)

func TestMemoryStore(t *testing.T) {
	storetest.Store(t, func(*testing.T) storetest.StoreHarness[*storetest.MemoryTx] {
		clock := ledgertest.NewClock()
		m := storetest.NewMemoryStore(clock.Now)
		return storetest.StoreHarness[*storetest.MemoryTx]{
			Open: func(*testing.T) storetest.StoreHandle[*storetest.MemoryTx] {
				h := m.Handle()
				return storetest.StoreHandle[*storetest.MemoryTx]{
					Store: h,
					Begin: func(ctx context.Context) (*storetest.MemoryTx, func(bool) error, error) {
						tx, err := h.Begin(ctx)
						return tx, func(commit bool) error {
							if commit {
								return tx.Commit(context.Background())
							}
							tx.Rollback()
							return nil
						}, err
					},
					Close: func() error { h.Close(); return nil },
				}
			},
			Insert:  func(ctx context.Context, tx *storetest.MemoryTx, row string) error { return tx.Insert(ctx, row) },
			Rows:    func(*testing.T) []string { return m.Rows() },
			Advance: func(_ *testing.T, d time.Duration) { clock.Advance(d) },
			Frozen:  true,
			FailAt: func(_ *testing.T, n int) func() bool {
				hit := false
				m.SetFault(func(string) error {
					if n--; n == 0 {
						hit = true
						return errors.New("fault")
					}
					return nil
				})
				return func() bool {
					m.SetFault(nil)
					return hit
				}
			},
		}
	})
}

var _ service.Store[*storetest.MemoryTx] = storetest.NewMemoryStore(nil)
