package cli

import (
	"bytes"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/agentic-go/agentic/internal/escape"
	"github.com/agentic-go/agentic/internal/place"
	"github.com/agentic-go/agentic/internal/render"
)

const ledgerHelp = `Look after the ledger itself: the file or the PostgreSQL database that --ledger or
AGENTIC_LEDGER names.`

const migrateHelp = `Make the tables of a ledger, or bring those of an older version forward.

A file is also brought forward by every command that writes to it. A database is
changed by this command alone, by a user with the right to make a schema and tables;
the users of the other commands need no such right. It makes the tables of the
ledger, in the schema agentic or the one that the URL names with agentic_schema=NAME,
and those of the job engine that spreads the work of 'agentic work'.

Running it again changes nothing. An older version of this program may not work on
with what a newer one has migrated.`

const checkHelp = `Look whether a ledger keeps what it is told, and who else can read it. Nothing is
changed.

Of a PostgreSQL database: its tables' version, the server's version and clock, the
settings without which the last commits can be lost (fsync, full_page_writes,
synchronous_commit), a server that only reads, a transaction pooler in between, and
the size of the pool. Of a file: its version, journal and synchronous setting,
whether it is whole, and its rights.

Exit code 1 means that something is a problem; a warning is none.`

func (a *app) newLedger() *cobra.Command {
	cmd := &cobra.Command{Use: "ledger", Short: "Look after the ledger itself", Long: ledgerHelp}
	cmd.AddCommand(a.newLedgerMigrate(), a.newLedgerCheck(), a.desk().Purge())
	a.asGroup(cmd)
	return cmd
}

func (a *app) newLedgerMigrate() *cobra.Command {
	var flag string
	cmd := &cobra.Command{
		Use:     "migrate",
		Short:   "Make the tables of a ledger, or bring them forward",
		Long:    migrateHelp,
		Example: "  agentic ledger migrate --ledger postgres://owner@db.example/agent\n  agentic ledger migrate --json",
		Args:    arguments(0, 0, ""),
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.migrateLedger(cmd.Context(), flag) },
	}
	placeFlag(cmd, &flag)
	a.jsonFlag(cmd)
	return cmd
}

func (a *app) migrateLedger(ctx context.Context, flag string) error {
	p, err := place.Find(flag, a.lookupEnv)
	if err != nil {
		return err
	}
	version, err := p.Migrate(ctx)
	if err != nil {
		return err
	}
	if a.json {
		return a.writeJSON(struct {
			Ledger string `json:"ledger"`
			Schema string `json:"schema"`
		}{p.String(), version})
	}
	return a.print(fmt.Appendf(nil, "%s has %s\n", escape.Terminal(p.String()), escape.Terminal(version)))
}

func (a *app) newLedgerCheck() *cobra.Command {
	var flag string
	cmd := &cobra.Command{
		Use:     "check",
		Short:   "Look whether a ledger keeps what it is told",
		Long:    checkHelp,
		Example: "  agentic ledger check --ledger postgres://agent@db.example/agent\n  agentic ledger check --json",
		Args:    arguments(0, 0, ""),
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.checkLedger(cmd.Context(), flag) },
	}
	placeFlag(cmd, &flag)
	a.jsonFlag(cmd)
	return cmd
}

func (a *app) checkLedger(ctx context.Context, flag string) error {
	p, err := place.Find(flag, a.lookupEnv)
	if err != nil {
		return err
	}
	h, err := p.Check(ctx)
	if err != nil {
		return err
	}
	if !h.OK {
		a.exit = exitError
	}
	if a.json {
		return a.writeJSON(h)
	}
	rows := [][]string{{"LEVEL", "CHECKED", "FOUND"}}
	for _, f := range h.Findings {
		rows = append(rows, []string{escape.Terminal(f.Level), escape.Terminal(f.Name), escape.Terminal(f.Value)})
	}
	var b bytes.Buffer
	render.Field(&b, "ledger", h.Place)
	b.Write(render.Table(rows))
	for _, f := range h.Findings {
		if f.Detail == "" && f.Remedy == "" {
			continue
		}
		fmt.Fprintf(&b, "%s: %s: %s\n", escape.Terminal(f.Level), escape.Terminal(f.Name), escape.Terminal(f.Detail))
		if f.Remedy != "" {
			fmt.Fprintf(&b, "  %s\n", escape.Quoted(f.Remedy))
		}
	}
	if h.OK {
		b.WriteString("ok: it keeps what it is told\n")
	}
	return a.print(b.Bytes())
}
