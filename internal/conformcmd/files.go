package conformcmd

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/agentic-go/agentic/conformance"
	"github.com/agentic-go/agentic/internal/advice"
	"github.com/agentic-go/agentic/internal/privatefile"
)

// outputFlags say which files a report is written to, beside standard output.
type outputFlags struct {
	junit, html, report string
}

func (f *outputFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.junit, "junit", "", "also write the report as JUnit XML to this `FILE`")
	cmd.Flags().StringVar(&f.html, "html", "", "also write the report as one HTML page to this `FILE`")
	cmd.Flags().StringVar(&f.report, "report", "", "also write the report as JSON to this `FILE`")
	completeFile(cmd, "junit", "xml")
	completeFile(cmd, "html", "html")
	completeFile(cmd, "report", "json")
}

// file is something that is written when a run has ended.
type file struct {
	flag, name string
	write      func(io.Writer) error
}

func (f *outputFlags) files(rep *conformance.Report) []file {
	return []file{
		{"--junit", f.junit, rep.WriteJUnit}, {"--html", f.html, rep.WriteHTML}, {"--report", f.report, rep.WriteJSON},
	}
}

// check refuses names that no file can have, before a long run ends in nothing.
func (f *outputFlags) check(more ...file) error {
	seen := map[string]string{}
	for _, o := range append(f.files(nil), more...) {
		if o.name == "" {
			continue
		}
		at, err := privatefile.Place(o.name)
		if err != nil {
			return cannotWrite(o, err)
		}
		if other := seen[at]; other != "" {
			return advice.BadUsage(other+" and "+o.flag+" name the same file", "Give each a file of its own.")
		}
		seen[at] = o.flag
	}
	return nil
}

func (f *outputFlags) write(rep *conformance.Report) error { return writeAll(f.files(rep)) }

// writeAll writes every file that it can.
func writeAll(all []file) (err error) {
	for _, o := range all {
		if o.name != "" {
			err = errors.Join(err, writeFile(o))
		}
	}
	return err
}

// writeFile writes a file that only its owner may read. It appears under its name, in the
// place of an older one, when it is whole and durable.
func writeFile(o file) (err error) {
	at, err := privatefile.Place(o.name)
	if err != nil {
		return cannotWrite(o, err)
	}
	tmp, err := os.CreateTemp(filepath.Dir(at), ".agentic-report-*")
	if err != nil {
		return cannotWrite(o, err)
	}
	w := bufio.NewWriter(tmp)
	if err = o.write(w); err == nil {
		err = w.Flush()
	}
	if err == nil {
		err = tmp.Sync()
	}
	if err = errors.Join(err, tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), at)
	}
	if err != nil {
		return cannotWrite(o, errors.Join(err, os.Remove(tmp.Name())))
	}
	if err := privatefile.SyncDir(filepath.Dir(at)); err != nil {
		return cannotWrite(o, err)
	}
	return nil
}

// cannotWrite names the file that was asked for, and not one on the way to it.
func cannotWrite(o file, err error) error {
	for {
		if e, ok := errors.AsType[*fs.PathError](err); ok {
			err = e.Err
		} else if e, ok := errors.AsType[*os.LinkError](err); ok {
			err = e.Err
		} else {
			break
		}
	}
	return advice.New("file", fmt.Errorf("%s: cannot write %s: %w", o.flag, o.name, err), "Look whether its folder is there and may be written to, and at the room on its disk.")
}
