package place

import (
	"context"
	"fmt"

	"github.com/agentic-go/agentic/internal/advice"
	"github.com/agentic-go/agentic/sqlite"
)

// Health is what a check of a ledger found.
type Health struct {
	Place    string    `json:"ledger"`
	Kind     string    `json:"kind"` // "sqlite" or "postgresql"
	OK       bool      `json:"ok"`   // no finding is a problem
	Findings []Finding `json:"findings"`
}

// Finding is one thing that was looked at. Detail and Remedy are empty when there is
// nothing to do.
type Finding struct {
	Name   string `json:"name"`
	Level  string `json:"level"` // "ok", "warning" or "problem"
	Value  string `json:"value"`
	Detail string `json:"detail,omitempty"`
	Remedy string `json:"remedy,omitempty"`
}

const problem = "problem"

// Check looks at what a ledger needs to keep its word, and changes nothing. The
// error is one of Open.
func (p Place) Check(ctx context.Context) (Health, error) {
	h := Health{Place: p.String(), Kind: "sqlite", OK: true}
	var err error
	if p.config != nil {
		h.Kind = "postgresql"
		h.Findings, err = p.checkPostgres(ctx)
	} else {
		h.Findings, err = p.checkFile(ctx)
	}
	for _, f := range h.Findings {
		h.OK = h.OK && f.Level != problem
	}
	return h, err
}

func (p Place) checkFile(ctx context.Context) ([]Finding, error) {
	if p.absent() {
		return nil, p.noLedger()
	}
	found, err := sqlite.CheckLedger(ctx, p.path)
	if err != nil {
		return nil, err
	}
	list := make([]Finding, len(found))
	for i, f := range found {
		list[i] = Finding{Name: f.Name, Level: string(f.Level), Value: f.Value, Detail: f.Detail, Remedy: f.Remedy}
	}
	return list, nil
}

// noLedger says that a file is not there.
func (p Place) noLedger() error {
	return advice.New("ledger", fmt.Errorf("there is no ledger at %s", p.path),
		"Give its place with --ledger or AGENTIC_LEDGER; 'agentic run' makes one.")
}
