package deskcmd

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/desk"
	"github.com/agentic-go/agentic/internal/advice"
	"github.com/agentic-go/agentic/internal/escape"
	"github.com/agentic-go/agentic/internal/privatefile"
	"github.com/agentic-go/agentic/internal/render"
)

const exportHelp = `Write requests out, whole, as JSON Lines: one object a line. A line of kind request has
all that 'agentic requests show --reveal --json' has but the judgement; a line of kind
document has a profile or an OpenAPI document, once, before the first request that
names its digest.

Inputs, found values and receipts can be sensitive. A file is made with rights for its
owner alone, appears only when it is whole, and never replaces another.`

func (c *Commands) export() *cobra.Command {
	var (
		filter filterFlags
		place  Place
		file   string
	)
	cmd := &cobra.Command{
		Use:     "export",
		Short:   "Write saved requests out as JSON Lines",
		Long:    exportHelp,
		Example: "  agentic requests export --older-than 90d --output requests-2026-q2.jsonl\n  agentic requests export --all --outcome unknown",
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		f, err := filter.filter(cmd, place, c.now())
		if err != nil {
			return err
		}
		if file == "" && c.out.JSON() {
			return advice.BadUsage("--json is about the file of --output, and without one the export itself goes to standard output", "Leave --json out for JSON Lines, or give a new file with --output.")
		}
		return c.exportRequests(cmd.Context(), place, f, file)
	}
	filter.add(cmd)
	cmd.Flags().StringVar(&file, "output", "", "write to this new `FILE` (default: standard output)")
	place = c.host.Place(cmd)
	c.host.Leaf(cmd, 0, "")
	cmd.Flags().Lookup("json").Usage = "with --output: print one JSON value on standard output about the file"
	return cmd
}

func (c *Commands) exportRequests(ctx context.Context, p Place, f client.Filter, file string) error {
	if file != "" {
		if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
			return notNew(file, err)
		}
	}
	l, closer, err := p.Open(ctx, true)
	if err != nil {
		return err
	}
	defer closer()
	d, err := desk.New(desk.Config{Ledger: l})
	if err != nil {
		return err
	}
	if file == "" {
		_, err := exportTo(ctx, d, f, c.out.Print)
		return err
	}
	n := 0
	err = newFile(file, func(w io.Writer) (err error) {
		n, err = exportTo(ctx, d, f, func(line []byte) error { _, err := w.Write(line); return err })
		return err
	})
	if err != nil {
		return err
	}
	if c.out.JSON() {
		return c.printed(c.printJSON(exported{file, n}), "the export is whole", "It is in "+escape.Shell(file)+".")
	}
	c.out.Say("%s in %s", render.Plural(n, "request"), escape.Terminal(file))
	return nil
}

// exported is what export wrote to a file.
type exported struct {
	File     string `json:"file"`
	Requests int    `json:"requests"`
}

// exportTo gives line after line, and counts the requests.
func exportTo(ctx context.Context, d *desk.Desk, f client.Filter, write func([]byte) error) (n int, err error) {
	line := func(v any) error {
		b, err := render.JSON(v)
		if err != nil {
			return err
		}
		return write(b)
	}
	known := map[string]bool{"": true} // a tombstone names no document
	err = d.Export(ctx, f, func(rec *client.Record) error {
		for _, doc := range []client.Snapshot{rec.Profile, rec.OpenAPI} {
			if !known[doc.Digest] {
				known[doc.Digest] = true
				if err := line(render.NewDocumentLine(doc)); err != nil {
					return err
				}
			}
		}
		n++
		return line(render.NewRecordLine(rec))
	})
	return n, err
}

// newFile makes a file that only its owner may read. It appears under its name when
// it is whole and durable, and replaces nothing.
func newFile(name string, fill func(io.Writer) error) (err error) {
	defer func() {
		// An error of the ledger is told as what it is.
		if e, ok := errors.AsType[*fs.PathError](err); ok && !errors.Is(err, client.ErrLedger) {
			err = advice.New("file", fmt.Errorf("cannot write %s: %w", name, e.Err), "Look whether its folder is there and may be written to, and at the room on its disk.")
		}
	}()
	tmp, err := os.CreateTemp(filepath.Dir(name), ".agentic-export-*")
	if err != nil {
		return err
	}
	defer func() {
		if e := os.Remove(tmp.Name()); !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}()
	w := bufio.NewWriter(tmp)
	if err = fill(w); err == nil {
		err = w.Flush()
	}
	if err == nil {
		err = tmp.Sync()
	}
	if err = errors.Join(err, tmp.Close()); err != nil {
		return err
	}
	if err = os.Link(tmp.Name(), name); err == nil {
		return privatefile.SyncDir(filepath.Dir(name))
	}
	// Where there are no hard links, a file made in this very moment is replaced.
	if _, e := os.Lstat(name); !errors.Is(e, fs.ErrNotExist) {
		return notNew(name, e)
	}
	return errors.Join(os.Rename(tmp.Name(), name), privatefile.SyncDir(filepath.Dir(name)))
}

func notNew(name string, err error) error {
	if err == nil {
		err = fmt.Errorf("there is something at %s already, and an export replaces nothing", name)
	}
	return advice.New("file", err, "Give the name of a new file with --output.")
}
