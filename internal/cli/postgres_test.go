package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentic-go/agentic/internal/pgtest"
)

// pgSecret is the password of every URL in these tests: the server asks for none, so
// it does nothing but show where it should not.
const pgSecret = "hunter2secret"

// pgLedger is a new database as --ledger names it, with a password, and what may be
// shown of it.
func pgLedger(t *testing.T, c *pgtest.Cluster) (given, shown string) {
	t.Helper()
	u, err := url.Parse(c.NewDatabase(t))
	if err != nil {
		t.Fatal(err)
	}
	shown = u.String()
	q := u.Query()
	q.Set("password", pgSecret)
	u.RawQuery = q.Encode()
	return u.String(), shown
}

// quiet runs a command whose output may not have the password.
func quiet(t *testing.T, args ...string) (code int, out, diag string) {
	t.Helper()
	code, out, diag = runHere(t, args...)
	if strings.Contains(out+diag, pgSecret) {
		t.Errorf("%s shows the password: stdout %s, stderr %s", args, out, diag)
	}
	return code, out, diag
}

func TestPostgresLedger(t *testing.T) {
	s := startTestTickets(t, "normal")
	given, shown := pgLedger(t, pgtest.Shared(t))
	reach := []string{"--approve", s.Origin, "--allow-loopback", "--ledger", given}
	run := func(more ...string) []string {
		return append(append([]string{"run", s.Origin + "/agentic.json", "--input", `{"subject":"x"}`, "--yes", "--json"}, reach...), more...)
	}
	migrate := "agentic ledger migrate --ledger '" + shown + "'"
	for _, args := range [][]string{run(), {"requests", "list", "--ledger", given, "--json"}, append([]string{"work", "--json"}, reach...)} {
		code, out, diag := quiet(t, args...)
		if code != exitError || !strings.Contains(out, `"code":"ledger"`) || !strings.Contains(diag, migrate) {
			t.Errorf("%s before the tables are there: exit code %d, stdout %s, stderr %s; want %s", args[0], code, out, diag, migrate)
		}
	}
	for range 2 {
		code, out, diag := quiet(t, "ledger", "migrate", "--ledger", given, "--json")
		if code != exitOK || !strings.Contains(out, `"schema":"version 1 in schema agentic"`) {
			t.Fatalf("migrate: exit code %d, stdout %s, stderr %s", code, out, diag)
		}
	}
	code, out, diag := quiet(t, run("--request-id", "request-1")...)
	if code != exitOK || !strings.Contains(out, `"outcome":"succeeded"`) {
		t.Fatalf("run: exit code %d, stdout %s, stderr %s", code, out, diag)
	}
	if code, again, diag := quiet(t, run("--request-id", "request-1")...); code != exitOK || again != out {
		t.Errorf("again: exit code %d, stdout %s, stderr %s", code, again, diag)
	}
	if code, out, diag := quiet(t, "resume", "request-1", "--ledger", given, "--json"); code != exitOK || !strings.Contains(out, `"outcome":"succeeded"`) {
		t.Errorf("resume: exit code %d, stdout %s, stderr %s", code, out, diag)
	}
	if code, out, diag := quiet(t, "requests", "list", "--ledger", given, "--json"); code != exitOK || strings.Count(out, `"request-1"`) != 1 {
		t.Errorf("list: exit code %d, stdout %s, stderr %s", code, out, diag)
	}
	code, out, diag = quiet(t, append([]string{"prepare", s.Origin + "/agentic.json", "--input", `{"subject":"y"}`, "--request-id", "request-2"}, reach...)...)
	if code != exitOK || !strings.Contains(diag, "--ledger '"+shown+"'") {
		t.Errorf("prepare: exit code %d, stdout %s, stderr %s", code, out, diag)
	}
	if code, out, diag := quiet(t, append([]string{"resume", "request-2", "--send", "--yes", "--json"}, reach...)...); code != exitOK || !strings.Contains(out, `"outcome":"succeeded"`) {
		t.Errorf("resume --send: exit code %d, stdout %s, stderr %s", code, out, diag)
	}
	code, out, diag = quiet(t, append([]string{"reconcile"}, reach...)...)
	if code != exitOK || out != "" {
		t.Errorf("reconcile: exit code %d, stdout %s, stderr %s", code, out, diag)
	}
	if state, err := s.State(t.Context()); err != nil || state.Posts != 2 {
		t.Errorf("%+v, %v; want two POSTs", state, err)
	}
}

// What is the matter with a database has advice, and the password in no word of it.
func TestPostgresRefuses(t *testing.T) {
	given, _ := pgLedger(t, pgtest.Shared(t))
	change := func(f func(*url.URL, url.Values)) string {
		u, err := url.Parse(given)
		if err != nil {
			t.Fatal(err)
		}
		q := u.Query()
		f(u, q)
		u.RawQuery = q.Encode()
		return u.String()
	}
	for _, tt := range []struct {
		name, ledger, want string
		exit               int
	}{
		{"no database", change(func(u *url.URL, _ url.Values) { u.Path = "/absent" }), "Look at the name of the database", exitError},
		{"no user", change(func(u *url.URL, q url.Values) { u.User = nil; q.Set("user", "nobody-here") }), "Look at the user in the URL", exitError},
		{"no server", change(func(_ *url.URL, q url.Values) { q.Set("host", t.TempDir()) }), "is up and can be reached", exitError},
		{"a broken URL", change(func(_ *url.URL, q url.Values) { q.Set("connect_timeout", "never") }), "Give connect_timeout as a whole number of seconds", exitUsage},
		{"a parameter of nobody", change(func(_ *url.URL, q url.Values) { q.Set("shema", "x") }), "the server does not take one of them", exitError},
		{"a value of nothing", change(func(_ *url.URL, q url.Values) { q.Set("statement_timeout", "x") }), "the server does not take one of them", exitError},
		{"keywords", "host=/run password=" + pgSecret, "Write it as postgres://", exitUsage},
	} {
		for _, args := range [][]string{{"requests", "list"}, {"ledger", "migrate"}, {"ledger", "check"}, {"work", "--approve", "https://a.example"}, {"resume", "request-1"}} {
			code, _, diag := quiet(t, append(args, "--ledger", tt.ledger)...)
			if code != tt.exit || !strings.Contains(diag, tt.want) {
				t.Errorf("%s: %s: exit code %d, stderr %s", tt.name, args, code, diag)
			}
		}
	}
}

// A server that does not keep what it says is a problem, and exit code 1.
func TestPostgresCheck(t *testing.T) {
	cluster := pgtest.Start(t)
	given, shown := pgLedger(t, cluster)
	check := func(exit int, want ...string) {
		t.Helper()
		code, out, diag := quiet(t, "ledger", "check", "--ledger", given)
		if code != exit {
			t.Errorf("exit code %d, want %d: %s %s", code, exit, out, diag)
		}
		for _, w := range want {
			if !strings.Contains(strings.Join(strings.Fields(out), " "), w) {
				t.Errorf("no %q in %s", w, out)
			}
		}
	}
	set := func(sql ...string) {
		t.Helper()
		conn, err := pgx.Connect(t.Context(), shown)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(t.Context())
		for _, s := range sql {
			if _, err := conn.Exec(t.Context(), s); err != nil {
				t.Fatal(err)
			}
		}
	}
	check(exitError, "problem schema not usable", "agentic ledger migrate --ledger '"+shown+"'", "warning job engine has no tables")
	if code, out, diag := quiet(t, "ledger", "migrate", "--ledger", given); code != exitOK {
		t.Fatal(out, diag)
	}
	check(exitOK, "LEVEL CHECKED FOUND", "ok fsync on", "ok synchronous_commit on", "of a worker 22", "ok job engine version ", "ok: it keeps what it is told")
	code, out, diag := quiet(t, "ledger", "check", "--ledger", given, "--json")
	if code != exitOK || !strings.Contains(out, `"kind":"postgresql","ok":true,"findings":[{"name":"schema","level":"ok","value":"version 1 in schema agentic"}`) {
		t.Errorf("exit code %d, stdout %s, stderr %s", code, out, diag)
	}
	// A role that may do everything but make a job.
	conn, err := url.Parse(given)
	if err != nil {
		t.Fatal(err)
	}
	q := conn.Query()
	conn.User = url.User("few")
	q.Set("user", "few")
	conn.RawQuery = q.Encode()
	owner := given
	given = conn.String()
	set("CREATE ROLE few LOGIN")
	check(exitError, "problem schema not usable", "USAGE on the schema", "problem job engine not usable by this role")
	set("GRANT USAGE ON SCHEMA agentic TO few", "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA agentic TO few")
	check(exitError, "ok schema", "ok rights", "problem job engine not usable by this role", "river_job_id_seq")
	set("GRANT USAGE ON ALL SEQUENCES IN SCHEMA agentic TO few")
	check(exitOK, "ok job engine version ")
	set("REVOKE INSERT ON agentic.river_job FROM few")
	s := startTestTickets(t, "pending")
	code, out, diag = quiet(t, "run", s.Origin+"/agentic.json", "--input", `{"subject":"x"}`, "--yes", "--approve", s.Origin, "--allow-loopback", "--ledger", given)
	if code != exitPending || strings.Count(diag, "saved without a job for the next look") != 1 || !strings.Contains(diag, "permission denied for table river_job") {
		t.Errorf("without jobs: exit code %d, stdout %s, stderr %s", code, out, diag)
	}
	given = owner

	// fsync itself is set on the command line of a cluster for tests.
	set(`DO $$BEGIN EXECUTE format('ALTER DATABASE %I SET synchronous_commit = off', current_database()); END$$`)
	check(exitOK, "ok synchronous_commit off, and on in the transactions of this program")
	set("ALTER SYSTEM SET full_page_writes = off")
	cluster.Restart(t, pgtest.Fast)
	check(exitError, "problem full_page_writes off", "Set full_page_writes = on.", "synchronous_commit off")
}

// slowDecision is a ticket service whose status is pending until decide is called.
func slowDecision(t *testing.T) (origin string, posts *atomic.Int64, decide func()) {
	var open atomic.Bool
	posts = new(atomic.Int64)
	origin = between(t, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		id, status := strings.CutPrefix(r.URL.Path, "/requests/")
		if r.Method == http.MethodPost {
			posts.Add(1)
		}
		if status && !open.Load() {
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprintf(w, `{"request_id":%q,"status":"pending","resource_id":null}`, id)
			return
		}
		next.ServeHTTP(w, r)
	})
	return origin, posts, func() { open.Store(true) }
}

// workerProcess is 'agentic work --json' as a process, and what it prints.
type workerProcess struct {
	*exec.Cmd
	lines *bufio.Scanner
	diag  *bytes.Buffer
}

func startWorker(t *testing.T, args ...string) *workerProcess {
	t.Helper()
	w := &workerProcess{Cmd: command(t, append([]string{"work", "--json"}, args...)...), diag: new(bytes.Buffer)}
	w.Stderr = w.diag
	out, err := w.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	w.lines = bufio.NewScanner(io.LimitReader(out, 1<<20))
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Process.Kill() }) // if the test failed
	return w
}

// event is the next line that is an event of this name with all of these words.
func (w *workerProcess) event(t *testing.T, name string, words ...string) (line map[string]any) {
	t.Helper()
	var seen []string
next:
	for w.lines.Scan() {
		seen = append(seen, w.lines.Text())
		line = nil
		if err := json.Unmarshal(w.lines.Bytes(), &line); err != nil {
			t.Fatalf("%s: %v", w.lines.Text(), err)
		}
		for _, word := range append(words, `"event":"`+name+`"`) {
			if !strings.Contains(w.lines.Text(), word) {
				continue next
			}
		}
		return line
	}
	_ = w.Wait()
	t.Fatalf("no event %s with %q: %s; stderr %s", name, words, strings.Join(seen, "\n"), w.diag)
	return nil
}

// stop ends it as an operator does.
func (w *workerProcess) stop(t *testing.T) {
	t.Helper()
	if err := w.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	w.event(t, "drained")
	if err := w.Wait(); err != nil {
		t.Errorf("a worker that drains: %v, stderr %s", err, w.diag)
	}
	if strings.Contains(w.diag.String(), pgSecret) {
		t.Errorf("the worker shows the password: %s", w.diag)
	}
}

// A request that one host sent and that stays pending at the service becomes a
// verified receipt by a worker on another host, and is never sent again. The hosts
// are processes that share nothing but the ledger.
func TestWorkSettlesWhatAnotherHostSent(t *testing.T) {
	for _, tt := range []struct {
		name   string
		ledger func(*testing.T) string
		engine string
		more   []string
	}{
		{"PostgreSQL", func(t *testing.T) string { given, _ := pgLedger(t, pgtest.Shared(t)); return given }, "with the job engine", nil},
		{"PostgreSQL behind a pooler", func(t *testing.T) string { given, _ := pgLedger(t, pgtest.Shared(t)); return given }, "with the job engine", []string{"--poll-only"}},
		{"SQLite", func(t *testing.T) string { return filepath.Join(t.TempDir(), "ledger.db") }, "asking the ledger for what is due", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			origin, posts, decide := slowDecision(t)
			ledger := tt.ledger(t)
			if code, out, diag := quiet(t, "ledger", "migrate", "--ledger", ledger); code != exitOK {
				t.Fatal(code, out, diag)
			}
			reach := []string{"--approve", origin, "--allow-loopback", "--ledger", ledger}
			code, out, diag := exitOf(t, command(t, append([]string{"run", origin + "/agentic.json", "--input", `{"subject":"x"}`, "--yes", "--request-id", "request-1"}, reach...)...))
			if code != exitPending || strings.Contains(out+diag, pgSecret) {
				t.Fatalf("run: exit code %d, stdout %s, stderr %s", code, out, diag)
			}
			if code, out, diag := quiet(t, append([]string{"reconcile"}, reach...)...); code != exitPending {
				t.Errorf("reconcile: exit code %d, stdout %s, stderr %s", code, out, diag)
			}
			w := startWorker(t, append(append([]string{"--listen", "127.0.0.1:0"}, reach...), tt.more...)...)
			first := w.event(t, "working")
			if first["engine"] != tt.engine {
				t.Errorf("the worker works %v, want %s", first["engine"], tt.engine)
			}
			decide()
			w.event(t, "looked", `"request_id":"request-1"`, `"result":"verified"`, `"before":"pending"`, `"after":"succeeded"`)
			at := fmt.Sprint("http://", first["listen"])
			for path, want := range map[string]string{"/healthz": `"ok"`, "/readyz": `"ready"`, "/metrics": "agentic_executions"} {
				if body := string(get(t, at+path)); !strings.Contains(body, want) || strings.Contains(body, pgSecret) || strings.Contains(body, "request-1") {
					t.Errorf("%s: %s", path, body)
				}
			}
			w.stop(t)
			if !strings.Contains(w.diag.String(), "verified   request-1, create-ticket of "+origin+", pending before\n") {
				t.Errorf("stderr %s", w.diag)
			}
			code, out, diag = exitOf(t, command(t, "resume", "request-1", "--ledger", ledger, "--json"))
			if code != exitOK || !strings.Contains(out, `"outcome":"succeeded"`) || posts.Load() != 1 {
				t.Errorf("resume: exit code %d, %d POSTs, stdout %s, stderr %s", code, posts.Load(), out, diag)
			}
		})
	}
}

// A worker ends what runs before it ends, and a second signal does not wait for it.
func TestWorkDrains(t *testing.T) {
	for _, signals := range []int{1, 2} {
		t.Run(fmt.Sprint(signals, " signals"), func(t *testing.T) {
			t.Parallel()
			var worker atomic.Bool
			asked, answer := make(chan struct{}, 100), make(chan struct{})
			t.Cleanup(func() {
				select {
				case <-answer:
				default:
					close(answer)
				}
			})
			origin := between(t, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				id, status := strings.CutPrefix(r.URL.Path, "/requests/")
				switch {
				case status && worker.Load():
					asked <- struct{}{}
					<-answer
				case status:
					w.Header().Set("Content-Type", "application/json")
					_, _ = fmt.Fprintf(w, `{"request_id":%q,"status":"pending","resource_id":null}`, id)
					return
				}
				next.ServeHTTP(w, r)
			})
			ledger := filepath.Join(t.TempDir(), "ledger.db")
			reach := []string{"--approve", origin, "--allow-loopback", "--ledger", ledger}
			code, out, diag := exitOf(t, command(t, append([]string{"run", origin + "/agentic.json", "--input", `{"subject":"x"}`, "--yes", "--request-id", "request-1"}, reach...)...))
			if code != exitPending {
				t.Fatalf("run: exit code %d, stdout %s, stderr %s", code, out, diag)
			}
			worker.Store(true)
			w := startWorker(t, reach...)
			w.event(t, "working")
			select {
			case <-asked:
			case <-time.After(processTime):
				t.Fatal("the worker asked nothing")
			}
			for n := range signals {
				if err := w.Process.Signal(syscall.SIGTERM); err != nil {
					t.Fatal(err)
				}
				if n+1 < signals {
					time.Sleep(300 * time.Millisecond) // the first has to be seen
				}
			}
			if signals == 2 {
				err := w.Wait()
				if failed, ok := err.(*exec.ExitError); !ok || failed.Sys().(syscall.WaitStatus).Signal() != syscall.SIGTERM {
					t.Errorf("two signals: %v", err)
				}
				return
			}
			time.Sleep(300 * time.Millisecond)
			close(answer)
			w.event(t, "looked", `"result":"verified"`)
			w.event(t, "drained", `"verified":1`)
			if err := w.Wait(); err != nil {
				t.Errorf("one signal: %v, stderr %s", err, w.diag)
			}
		})
	}
}

// A worker that nobody hears, or whose pages cannot be served, is an error.
func TestWorkCannotTell(t *testing.T) {
	ledger := filepath.Join(t.TempDir(), "ledger.db")
	if code, out, diag := quiet(t, "ledger", "migrate", "--ledger", ledger); code != exitOK {
		t.Fatal(code, out, diag)
	}
	var diag bytes.Buffer
	ctx, cancel := context.WithTimeout(t.Context(), processTime)
	defer cancel()
	if code := testApp(&brokenPipe{}, &diag).run(ctx, []string{"work", "--approve", "https://a.example", "--json", "--ledger", ledger}); code != exitError || !strings.Contains(diag.String(), "cannot write to standard output") {
		t.Errorf("exit code %d, stderr %s", code, diag.String())
	}
	code, _, said := runHere(t, "work", "--approve", "https://a.example", "--ledger", ledger, "--listen", "256.0.0.1:1")
	if code != exitError || !strings.Contains(said, "cannot listen") || !strings.Contains(said, "127.0.0.1:9464") {
		t.Errorf("exit code %d, stderr %s", code, said)
	}
	// A wrong telemetry variable is told, and stops nothing.
	for _, value := range []string{"nonsense", "console"} {
		t.Setenv("OTEL_TRACES_EXPORTER", value)
		code, _, said = runHere(t, "reconcile", "--ledger", ledger)
		if code != exitOK || !strings.Contains(said, "OTEL_TRACES_EXPORTER="+value) || !strings.Contains(said, "nothing is open") {
			t.Errorf("%s: exit code %d, stderr %s", value, code, said)
		}
	}
}
