package fleet

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestNamesAndNumbers(t *testing.T) {
	var out strings.Builder
	l := slog.New(namesAndNumbers{slog.NewTextHandler(&out, nil)}).With("err", "secret", "queue", "q1")
	l.Info("not a warning")
	l.WithGroup("g").Error("Producer: Error fetching jobs", "err", "password=secret", "job_id", 7, "payload", []string{"secret"}, "job_kind", "k")
	got := out.String()
	if strings.Contains(got, "secret") || strings.Contains(got, "not a warning") {
		t.Errorf("it logs %s", got)
	}
	for _, want := range []string{`msg="river: Producer: Error fetching jobs"`, "queue=q1", "g.job_id=7", "g.job_kind=k"} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is not in %s", want, got)
		}
	}
}

// What River says four times a second while the database is down is said once a
// minute, also by its loggers with attributes.
func TestSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		l := slog.New(namesAndNumbers{newSeldom(slog.NewTextHandler(&out, nil))})
		for i := range 4 * 60 * 3 {
			l.With("queue", i).WithGroup("g").Error("producer: Error fetching jobs", "n", i)
			time.Sleep(250 * time.Millisecond)
		}
		l.Warn("something else")
		if n := strings.Count(out.String(), "\n"); n != 4 || !strings.Contains(out.String(), "something else") {
			t.Errorf("%d lines: %s", n, &out)
		}
		for i := range 2 * maxSaid {
			l.Warn(fmt.Sprint("sentence ", i))
		}
		if h := l.Handler().(namesAndNumbers).next.(seldom); len(h.said.at) > maxSaid {
			t.Errorf("%d messages are remembered", len(h.said.at))
		}
	})
}
