package conformcmd

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/agentic-go/agentic/conformance"
	"github.com/agentic-go/agentic/internal/advice"
	"github.com/agentic-go/agentic/internal/render"
)

// maxBaselineBytes bounds a baseline.
const maxBaselineBytes = 1 << 20

// knownHelp is of the flags that say which failures count.
const knownHelp = `--baseline names the failures that are known, each with a reason. They do not fail a
run, and what passes although it is in there does. --write-baseline makes such a file
from this run. --level says how binding a check has to be for its failure to fail the
run: must alone, should and must, or all (reading is the same). The report has every
check still, and says what was left out of judgement. The subject of a service's baseline
is its origin.

A subject that only runs into time limits is given up: after 5 such checks in a row the
others are not tried, and the report says so.
`

const judgedExits = `  0  no check of the level failed that was not expected to
  1  one failed, could not be tried, or passed although the baseline says otherwise;
     or an error`

// allLevels has every failure fail the run.
const allLevels = "all"

// judgedLevels are the words of --level. reading is the last level, so it is all too.
var judgedLevels = map[string]conformance.Level{"must": conformance.Must, "should": conformance.Should, "reading": conformance.Reading, allLevels: ""}

// judgement is the flags that say which failures count.
type judgement struct {
	level, baseline, writeBaseline string
}

func (j *judgement) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&j.level, "level", allLevels, "failures up to this `LEVEL` fail the run: must, should, reading or all")
	cmd.Flags().StringVar(&j.baseline, "baseline", "", "`FILE` with the failures that are known")
	cmd.Flags().StringVar(&j.writeBaseline, "write-baseline", "", "write a baseline of what failed to this `FILE`, with the reasons of --baseline")
	complete(cmd, "level", "must", "should", "reading", allLevels)
	completeFile(cmd, "baseline", "json")
	completeFile(cmd, "write-baseline", "json")
}

func (j *judgement) check() error {
	if _, ok := judgedLevels[j.level]; !ok && j.level != "" {
		return advice.BadUsage("there is no level "+strconv.Quote(j.level), "Give must, should, reading or all.")
	}
	return nil
}

// judge applies what is known of the subject, and finishes the report.
func (c *Commands) judge(rep *conformance.Report, f *runFlags, known conformance.Baseline) error {
	if f.baseline != "" {
		rep.Apply(known)
	}
	rep.Judged = judgedLevels[f.level]
	return c.finish(rep, &f.outputFlags, file{"--write-baseline", f.writeBaseline, rep.Baseline(known).Write})
}

// readBaseline reads a baseline of that subject; without a name it is empty.
func (c *Commands) readBaseline(ctx context.Context, name, subject string, kind conformance.Kind) (conformance.Baseline, error) {
	if name == "" {
		return conformance.Baseline{}, nil
	}
	data, err := c.host.ReadFile(ctx, name, maxBaselineBytes)
	if err != nil {
		return conformance.Baseline{}, err
	}
	if len(data) > maxBaselineBytes {
		err = errors.New("the file is longer than " + render.Plural(maxBaselineBytes, "byte"))
	}
	var b conformance.Baseline
	if err == nil {
		b, err = conformance.ParseBaseline(data)
	}
	if err == nil {
		err = b.Check(subject, checks(kind))
	}
	if err != nil {
		return b, advice.New("baseline", fmt.Errorf("%s: %w", name, err), "docs/conformance.md shows what a baseline has in it; --write-baseline makes one.")
	}
	return b, nil
}
