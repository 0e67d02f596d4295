package servicekit_test

import (
	"slices"
	"testing"
	"time"

	"github.com/agentic-go/agentic/conformance"
	"github.com/agentic-go/agentic/conformance/servicekit"
	"github.com/agentic-go/agentic/internal/pgtest"
)

// What no run can try, whatever it is given.
var never = []string{"retention/window", "retention/expiry", "atomicity/crash"}

// The services of this project pass every check, twice, and everything is tried but
// what cannot be.
func TestOwnServices(t *testing.T) {
	t.Parallel()
	database := func(t *testing.T) string { return pgtest.Shared(t).NewDatabase(t) }
	type own struct {
		config func(*testing.T) servicekit.Config
		beside []string // what is not tried of it
	}
	atOnce(t, map[string]own{
		"ticket on SQLite":          {func(t *testing.T) servicekit.Config { return startDesk(t, "", "").config() }, []string{"scope/action"}},
		"ticket on PostgreSQL":      {func(t *testing.T) servicekit.Config { return startDesk(t, database(t), "").config() }, []string{"scope/action"}},
		"two actions on SQLite":     {func(t *testing.T) servicekit.Config { return startShop(t, "") }, nil},
		"two actions on PostgreSQL": {func(t *testing.T) servicekit.Config { return startShop(t, database(t)) }, nil},
	}, func(t *testing.T, _ string, c own) {
		cfg := c.config(t)
		cfg.Repeat, cfg.Settle = 2, 3*time.Second
		rep := check(t, cfg)
		if !rep.OK() || rep.Summary.Passed != len(rep.Checks)-len(never)-len(c.beside) {
			t.Errorf("summary: %+v", rep.Summary)
			show(t, rep)
		}
		for _, r := range rep.Checks {
			if r.Status == conformance.NotExercised && !slices.Contains(never, r.ID) && !slices.Contains(c.beside, r.ID) {
				t.Errorf("%s was not exercised: %s", r.ID, r.Missing)
			}
		}
	})
}
