package proof

import (
	"context"
	"testing"
	"time"

	"github.com/agentic-go/agentic/internal/pgtest"
)

// PostgreSQL ends and comes back under load, while the publisher's process goes
// on: clear answers of 503, nothing lost, nothing twice, and it works again by
// itself.
func TestServiceOutage(t *testing.T) {
	cluster := pgtest.Start(t)
	s := newPostgresShop(t, cluster)
	tr := newTraffic(t, s, 16)
	s.open()
	stop := tr.run()
	for _, mode := range []pgtest.Mode{pgtest.Fast, pgtest.Immediate, pgtest.Fast, pgtest.Immediate} {
		time.Sleep(300 * time.Millisecond)
		cluster.Stop(t, mode)
		_, before, _ := tr.counts()
		const few = 20
		await(t, "clear answers of 503", func() bool { _, later, _ := tr.counts(); return later >= before+few })
		cluster.Start(t)
		back := time.Now()
		await(t, "an answer after the start", func() bool {
			return tr.submit(context.Background(), orderKey{"ann", "thing", "after-" + back.Format("150405.000000000")}, wish{Subject: "one", Do: "done"}, 0).word == "done"
		})
		t.Logf("%v after PostgreSQL was back, a submission was done", time.Since(back))
	}
	stop()
	_, _, gone := tr.counts()
	if gone != 0 {
		t.Errorf("%d calls got no answer, though the publisher's process went on", gone)
	}
	tr.prove(t, s)
}

// await asks until it is so.
func await(t *testing.T, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(15 * time.Second); !so(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("there is not, in 15 s: %s", what)
		}
	}
}
