package ticket

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentic-go/agentic/internal/pgtest"
)

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	newer, older, foreign, text := filepath.Join(dir, "newer.db"), filepath.Join(dir, "older.db"), filepath.Join(dir, "foreign.db"), filepath.Join(dir, "text.db")
	for path, sqlText := range map[string]string{newer: "PRAGMA user_version = 3", older: "PRAGMA user_version = 1", foreign: "CREATE TABLE users (id)"} {
		db, err := sql.Open("sqlite", path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.Exec(sqlText); err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(text, bytes.Repeat([]byte("not a database\n"), 100), 0o600); err != nil {
		t.Fatal(err)
	}
	const origin = "http://127.0.0.1:4318"
	whoever := func(*http.Request) (string, error) { return "whoever", nil }
	for name, cfg := range map[string]Config{
		"no origin":                  {},
		"remote http":                {Origin: "http://example.com", Principal: whoever},
		"not canonical":              {Origin: origin + "/"},
		"not on loopback, anonymous": {Origin: "https://support.example"},
		"fault":                      {Origin: origin, Fault: "nonsense"},
		"short retention":            {Origin: origin, Retention: 59 * time.Second},
		"long retention":             {Origin: origin, Retention: MaxRetention + time.Second},
		"parts of seconds":           {Origin: origin, Retention: time.Minute + 1},
		"newer database":             {Origin: origin, Path: newer},
		"older database":             {Origin: origin, Path: older},
		"foreign database":           {Origin: origin, Path: foreign},
		"no database":                {Origin: origin, Path: text},
		"no directory":               {Origin: origin, Path: filepath.Join(dir, "none", "t.db")},
		"file and PostgreSQL":        {Origin: origin, Path: text, Postgres: "postgres://127.0.0.1:1/x"},
		"no PostgreSQL":              {Origin: origin, Postgres: "postgres://127.0.0.1:1/x"},
		"no URL":                     {Origin: origin, Postgres: "postgres://%"},
	} {
		svc, err := Open(t.Context(), cfg)
		if err == nil {
			t.Errorf("%s: opened", name)
			_ = svc.Close()
		}
	}
}

// An error of Open may be logged, and the URL holds a password.
func TestOpenTellsNoPassword(t *testing.T) {
	for _, url := range []string{"postgres://u:hunter2@127.0.0.1:1/x", "postgres://u:hunter2@127.0.0.1:1/x?sslmode=nonsense", "host=127.0.0.1 port=1 user=u password=hunter2"} {
		_, err := Open(t.Context(), Config{Origin: "http://127.0.0.1:4318", Postgres: url})
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%v", err)
		}
	}
}

// The file is nobody else's, and what was answered survives a power failure.
func TestPrivateAndDurable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.db")
	d, err := openSQLite(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.close() })
	for pragma, want := range map[string]string{"journal_mode": "wal", "synchronous": "2", "busy_timeout": "10000"} {
		var have string
		err := d.db.QueryRow("PRAGMA " + pragma).Scan(&have)
		equal(t, pragma, []any{have, err}, []any{want, nil})
	}
	if runtime.GOOS == "windows" {
		return
	}
	for _, suffix := range []string{"", "-wal", "-shm"} {
		info, err := os.Stat(path + suffix)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "mode of t.db"+suffix, info.Mode().Perm(), os.FileMode(0o600))
	}
}

func TestTemporaryDatabaseIsRemoved(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	s := start(t, Config{})
	made, err := filepath.Glob(filepath.Join(os.Getenv("TMPDIR"), "agentic-ticket-*", "tickets.db"))
	equal(t, "made", []any{len(made), err}, []any{1, nil})
	equal(t, "first close", s.svc.Close(), nil)
	equal(t, "second close", s.svc.Close(), nil)
	if _, err := os.Stat(filepath.Dir(made[0])); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("still there: %v", err)
	}
}

// After the database is gone everything is a 503 that records nothing, and the log
// says so without the key or the input.
func TestClosedDatabase(t *testing.T) {
	onBoth(t, func(t *testing.T, cfg Config) {
		var log bytes.Buffer
		cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
		s := start(t, cfg)
		if err := s.svc.Close(); err != nil {
			t.Fatal(err)
		}
		refused := s.post("secret-key", subject)
		wantProblem(t, refused, 503, "status")
		equal(t, "Retry-After", refused.header.Get("Retry-After") != "", true)
		for _, path := range []string{"/requests/secret-key", "/tickets/T-1", "/health"} {
			g := s.get(path)
			equal(t, path, []any{g.code, g.header.Get("Retry-After") != ""}, []any{503, true})
		}
		if _, err := s.svc.State(context.Background()); err == nil || errors.Is(err, context.Canceled) {
			t.Errorf("state: %v", err)
		}
		if out := log.String(); strings.Count(out, "level=ERROR") < 4 || strings.Contains(out, "secret-key") || strings.Contains(out, "Printer") {
			t.Errorf("log: %s", out)
		}
	})
}

// What was answered before Close is there after it, and nothing else.
func TestCloseWhileSubmitting(t *testing.T) {
	onBoth(t, func(t *testing.T, cfg Config) {
		if cfg.Postgres == "" {
			cfg.Path = filepath.Join(t.TempDir(), "t.db")
		}
		s := start(t, cfg)
		var wg sync.WaitGroup
		var kept atomic.Int64
		for i := range 8 {
			wg.Go(func() {
				for n := 0; ; n++ {
					switch g := s.post(fmt.Sprint(i, "-", n), subject); g.code {
					case 201:
						kept.Add(1)
					case 503:
						return
					default:
						t.Errorf("%+v", g)
						return
					}
				}
			})
		}
		time.Sleep(50 * time.Millisecond)
		equal(t, "close", s.svc.Close(), nil)
		wg.Wait()
		start(t, cfg).wantState(State{Tickets: int(kept.Load()), Requests: int(kept.Load())})
	})
}

// Two services on one database still make one ticket for one key; also when both
// make its tables at once.
func TestTwoServicesOnOneDatabase(t *testing.T) {
	onBoth(t, func(t *testing.T, cfg Config) {
		if cfg.Postgres == "" {
			cfg.Path = filepath.Join(t.TempDir(), "t.db")
		}
		cfg.Origin = "http://127.0.0.1:4318"
		var opening sync.WaitGroup
		for range 4 {
			opening.Go(func() {
				svc, err := Open(t.Context(), cfg)
				if err != nil {
					t.Error(err)
					return
				}
				equal(t, "close", svc.Close(), nil)
			})
		}
		opening.Wait()
		services := []*server{start(t, cfg), start(t, cfg)}
		var wg sync.WaitGroup
		var firsts atomic.Int64
		for i := range 40 {
			wg.Go(func() {
				switch g := services[i%2].post(fmt.Sprint("k", i/4), subject); g.code {
				case 201:
					firsts.Add(1)
				case 200:
				default:
					t.Errorf("%+v", g)
				}
			})
		}
		wg.Wait()
		equal(t, "firsts", firsts.Load(), int64(10))
		services[0].wantState(State{Posts: 20, Tickets: 10, Requests: 10})
	})
}

// PostgreSQL stopped and started again under the service: 503 in between, and then
// everything as it was.
func TestPostgresComesBack(t *testing.T) {
	cluster := pgtest.Start(t)
	s := start(t, Config{Postgres: cluster.NewDatabase(t)})
	equal(t, "before", s.post("before", subject).code, 201)
	cluster.Stop(t, pgtest.Fast)
	for _, g := range []got{s.post("between", subject), s.get("/requests/before"), s.get("/tickets/T-1"), s.get("/health")} {
		equal(t, "between", []any{g.code, g.header.Get("Retry-After") != ""}, []any{503, true})
	}
	cluster.Start(t)
	equal(t, "repeat", s.post("before", subject).code, 200)
	equal(t, "what was refused", s.get("/requests/between").member("status"), "unknown")
	equal(t, "the same again", s.post("between", subject).code, 201)
	s.wantState(State{Posts: 4, Tickets: 2, Requests: 2, Reads: 3})
}

// The window of a record in PostgreSQL is that of the profile, by the database's
// clock; past it the key is never used again.
func TestPostgresWindow(t *testing.T) {
	url := pgtest.Shared(t).NewDatabase(t)
	s := start(t, Config{Postgres: url, Retention: 90 * time.Minute})
	equal(t, "first", s.post("k", subject).code, 201)
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	var window float64
	err = conn.QueryRow(t.Context(), "SELECT extract(epoch FROM expires_at - created_at)::float8 FROM agentic_ticket.tracked_request").Scan(&window)
	equal(t, "window", []any{window, err}, []any{90 * 60.0, nil})
	if _, err := conn.Exec(t.Context(), "UPDATE agentic_ticket.tracked_request SET created_at = created_at - interval '91 minutes', expires_at = expires_at - interval '91 minutes'"); err != nil {
		t.Fatal(err)
	}
	equal(t, "status", s.get("/requests/k").member("status"), "unknown")
	wantProblem(t, s.post("k", subject), 409, "window")
	equal(t, "the ticket stays", s.get("/tickets/T-1").code, 200)
	s.wantState(State{Posts: 2, Tickets: 1, Requests: 1, Reads: 2})
}

// BenchmarkSubmit is POST /tickets over loopback keep-alive connections, each with
// a key of its own, every ticket durable before its answer.
func BenchmarkSubmit(b *testing.B) {
	for _, callers := range []int{1, 16, 64} {
		b.Run(fmt.Sprint(callers), func(b *testing.B) {
			s := start(b, Config{Path: filepath.Join(b.TempDir(), "t.db")})
			var next atomic.Int64
			var wg sync.WaitGroup
			for range callers {
				wg.Go(func() {
					for {
						n := next.Add(1)
						if n > int64(b.N) {
							return
						}
						g, err := s.try(http.MethodPost, "/tickets", subject, fmt.Sprintf("Idempotency-Key: 01890a5d-ac96-774b-bcce-b302099a%04d-%d", n%10000, n))
						if err != nil || g.code != 201 {
							b.Errorf("%d %v", g.code, err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "posts/s")
		})
	}
}
