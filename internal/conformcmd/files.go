package conformcmd

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

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

// source is a file that a run reads, as its flag names it; name "" is none.
type source struct{ flag, name string }

// check refuses names that no report can be written to, before a long run ends in
// nothing: also those of files that the run reads, and of another output.
func (f *outputFlags) check(sources []source, more ...file) error {
	var before []file
	for _, o := range append(f.files(nil), more...) {
		if o.name == "" {
			continue
		}
		at, err := place(o.name)
		if err != nil {
			return cannotWrite(o, err)
		}
		for _, s := range sources {
			if s.name != "" && s.name != "-" && same(at, s.name) {
				return advice.BadUsage(o.flag+" would overwrite the file that "+s.flag+" names", "Give "+o.flag+" a file of its own.")
			}
		}
		for _, other := range before {
			if same(at, other.name) {
				return advice.BadUsage(other.flag+" and "+o.flag+" name the same file", "Give each a file of its own.")
			}
		}
		for _, stream := range []string{"/dev/stdin", "/dev/stdout", "/dev/stderr"} { // where the system has them
			if same(at, stream) {
				return advice.BadUsage(o.flag+" names the file that is "+stream+" already", "Give "+o.flag+" a file of its own.")
			}
		}
		before = append(before, file{o.flag, at, nil})
	}
	return nil
}

// same reports whether two names are one file, there or not.
func same(a, b string) bool {
	if x, err := os.Stat(a); err == nil {
		if y, err := os.Stat(b); err == nil {
			return os.SameFile(x, y)
		}
	}
	x, err := filepath.Abs(a)
	y, err2 := filepath.Abs(b)
	return err == nil && err2 == nil && x == y
}

// place is the true path of an output: a regular file that is replaced, or a name that
// is free. Devices, pipes and sockets are never replaced, and neither is anything in the
// trees of the system in which what looks like a file is none.
func place(name string) (string, error) {
	at, err := privatefile.Place(name)
	for _, each := range []string{name, at} {
		abs, _ := filepath.Abs(each)
		for _, tree := range []string{"/dev", "/proc", "/sys"} {
			if each != "" && (abs == tree || strings.HasPrefix(abs, tree+"/")) {
				return "", fmt.Errorf("%w: it is below %s", privatefile.ErrPlace, tree)
			}
		}
	}
	return at, err
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
	at, err := place(o.name)
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
	remedy := "Look whether its folder is there and may be written to, and at the room on its disk."
	if errors.Is(err, privatefile.ErrPlace) {
		remedy = "Give the name of a regular file, or one that is free. What the command prints goes to standard output without this flag."
	}
	return advice.New("file", fmt.Errorf("%s: cannot write %s: %w", o.flag, o.name, err), remedy)
}
