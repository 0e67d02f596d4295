package cli

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentic-go/agentic/internal/demo"
	"github.com/agentic-go/agentic/internal/place"
	"github.com/agentic-go/agentic/internal/ticket"
	"github.com/agentic-go/agentic/sqlite"
)

// startTestTickets is a ticket service in this process.
func startTestTickets(t *testing.T, fault ticket.Fault) *demo.Tickets {
	t.Helper()
	s, err := demo.Start(context.Background(), "127.0.0.1:0", ticket.Config{Fault: fault}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// between serves a ticket service behind a handler of the test.
func between(t *testing.T, handle func(w http.ResponseWriter, r *http.Request, next http.Handler)) (origin string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	origin = "http://" + l.Addr().String()
	s, err := ticket.Open(context.Background(), ticket.Config{Origin: origin})
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handle(w, r, s.Handler()) })}
	go server.Serve(l)
	t.Cleanup(func() {
		server.Close()
		s.Close()
	})
	return origin
}

// A credential goes with the exchanges of the action to the profile's origin, and
// with nothing else; its value is in no output.
func TestHeaderFromEnv(t *testing.T) {
	const secret = "Bearer very-secret-value"
	var mu sync.Mutex
	var seen []string
	origin := between(t, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		mu.Lock()
		path := strings.Split(r.URL.Path, "/")[1]
		seen = append(seen, r.Method+" "+path+" "+r.Header.Get("Authorization"))
		mu.Unlock()
		next.ServeHTTP(w, r)
	})
	cmd := command(t, "run", origin+"/agentic.json", "--approve", origin, "--allow-loopback", "--input", `{"subject":"x"}`,
		"--yes", "--header-from-env", "Authorization=TEST_TOKEN")
	cmd.Env = append(cmd.Env, "TEST_TOKEN="+secret)
	code, out, diag := exitOf(t, cmd)
	if code != exitOK || strings.Contains(out+diag, "very-secret") {
		t.Fatalf("exit code %d, stdout %s, stderr %s", code, out, diag)
	}
	want := []string{"GET agentic.json ", "GET openapi.json ", "POST tickets " + secret, "GET requests " + secret, "GET tickets " + secret}
	mu.Lock()
	defer mu.Unlock()
	if !slices.Equal(seen, want) {
		t.Errorf("requests %q, want %q", seen, want)
	}
	for _, value := range []string{"", "two\nlines", " blank"} {
		cmd := command(t, "run", "absent.json", "--input", "{}", "--yes", "--header-from-env", "Authorization=TEST_TOKEN")
		cmd.Env = append(cmd.Env, "TEST_TOKEN="+value)
		if code, _, diag := exitOf(t, cmd); code != exitUsage || !strings.Contains(diag, "TEST_TOKEN") || strings.Contains(diag, "lines") {
			t.Errorf("value %q: exit code %d, stderr %s", value, code, diag)
		}
	}
}

// What a service sends without being asked is in no output, also not by way of the
// standard logger, where net/http quotes it.
func TestUnsolicitedAnswer(t *testing.T) {
	const noise = "\x1b[2Jsomebody's words"
	origin := between(t, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if !strings.HasPrefix(r.URL.Path, "/requests/") {
			next.ServeHTTP(w, r)
			return
		}
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		const pending = `{"request_id":"request-1","status":"pending","resource_id":null}`
		_, _ = fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(pending), pending)
		time.Sleep(20 * time.Millisecond) // the client waits 100 ms for its next check
		_, _ = fmt.Fprint(conn, noise)
		_, _ = conn.Read(make([]byte, 1)) // until the client has had enough
	})
	cmd := command(t, "run", origin+"/agentic.json", "--approve", origin, "--allow-loopback", "--input", `{"subject":"x"}`, "--yes", "--request-id", "request-1")
	code, out, diag := exitOf(t, cmd)
	if code != exitPending || strings.Contains(out+diag, "somebody") || strings.Contains(diag, "nsolicited") {
		t.Errorf("exit code %d, stdout %s, stderr %s", code, out, diag)
	}
}

// An interrupted run says that the request is saved and how to go on; nothing is
// sent a second time.
func TestInterrupt(t *testing.T) {
	arrived := make(chan struct{})
	var mu sync.Mutex
	posts := 0
	origin := between(t, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.Method != http.MethodPost {
			next.ServeHTTP(w, r)
			return
		}
		mu.Lock()
		posts++
		mu.Unlock()
		close(arrived)
		<-r.Context().Done() // no answer, ever
	})
	cmd := command(t, "run", origin+"/agentic.json", "--approve", origin, "--allow-loopback", "--input", `{"subject":"x"}`,
		"--yes", "--json", "--request-id", "interrupted-1")
	errPipe, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		<-arrived
		_ = cmd.Process.Signal(os.Interrupt)
	}()
	var diag strings.Builder
	for lines := bufio.NewScanner(errPipe); lines.Scan(); {
		diag.WriteString(lines.Text() + "\n")
	}
	_ = cmd.Wait() // the exit code is looked at
	if code := cmd.ProcessState.ExitCode(); code != exitError || !strings.Contains(out.String(), `"code":"interrupted"`) ||
		!strings.Contains(out.String(), `"request_id":"interrupted-1"`) ||
		!strings.Contains(diag.String(), "the action may have been sent as request interrupted-1") ||
		!strings.Contains(diag.String(), "agentic resume interrupted-1 --approve "+origin) {
		t.Fatalf("exit code %d, stdout %s, stderr %s", code, out.String(), diag.String())
	}
	resume := command(t, "resume", "interrupted-1", "--approve", origin, "--allow-loopback", "--json")
	resume.Env = cmd.Env // the same ledger
	code, receipt, _ := exitOf(t, resume)
	mu.Lock()
	defer mu.Unlock()
	if code != exitUnknown || !strings.Contains(receipt, `"outcome":"unknown"`) || posts != 1 {
		t.Errorf("resume: exit code %d, %s; %d POSTs", code, receipt, posts)
	}
}

// After the window nothing is read, so the way on is a person's, and asking again adds
// no receipt.
func TestAfterTheWindow(t *testing.T) {
	s := startTestTickets(t, "pending")
	path := filepath.Join(t.TempDir(), "ledger.db")
	reach := []string{"--approve", s.Origin, "--allow-loopback", "--ledger", path}
	code, out, diag := runHere(t, append([]string{"run", s.Origin + "/agentic.json", "--input", `{"subject":"x"}`, "--yes", "--request-id", "request-1"}, reach...)...)
	if code != exitPending || !strings.Contains(diag, "To ask again later: agentic resume request-1") {
		t.Fatal(code, out, diag)
	}
	for _, args := range [][]string{{"resume", "request-1"}, {"requests", "recheck", "request-1", "--reason", "they are up", "--by", "ann"}} {
		var out, diag bytes.Buffer
		a := testApp(&out, &diag)
		a.open = func(ctx context.Context, _ place.Place, _ place.Options) (ledger, error) {
			l, err := sqlite.Open(ctx, sqlite.Config{Path: path, Clock: func() time.Time { return time.Now().Add(30 * 24 * time.Hour) }})
			if err != nil {
				return ledger{}, err
			}
			return ledger{Ledger: l, close: l.Close}, nil
		}
		code := a.run(t.Context(), append(args, reach...))
		if code != exitUnknown || strings.Contains(diag.String(), "again later") || !strings.Contains(diag.String(), "What a person can do: agentic requests show request-1 --ledger") {
			t.Errorf("%s: exit code %d, stderr %s", args[0], code, diag.String())
		}
	}
	if _, out, _ := runHere(t, "requests", "show", "request-1", "--ledger", path, "--json"); strings.Count(out, `"observed_at"`) != 2 {
		t.Errorf("want a pending receipt and one of the window's end: %s", out)
	}
}
