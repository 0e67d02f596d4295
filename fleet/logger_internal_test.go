package fleet

import (
	"log/slog"
	"strings"
	"testing"
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
