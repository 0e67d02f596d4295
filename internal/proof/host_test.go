package proof

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/internal/ticket"
	"github.com/agentic-go/agentic/sqlite"
	"github.com/agentic-go/agentic/transport"
)

const hostRole = "AGENTIC_PROOF_HOST"

// order is what a host process is told to do, and report is what it says of each
// request, one line of JSON each, after the receipt was returned to it.
type order struct {
	Origin  string
	Ledger  string
	IDs     []string
	Callers int    // goroutines for each ID
	Resume  bool   // Resume instead of Execute
	Prepare bool   // Prepare first, then Execute by the ID alone
	KillAt  string // SIGKILL itself there: a client.Point or a point of the ledger
}

type report struct {
	ID      string
	Sent    bool
	Receipt agentic.Receipt
	Err     string
}

func TestMain(m *testing.M) {
	for role, main := range map[string]func(string) error{hostRole: hostMain, publisherRole: publisherMain} {
		if spec := os.Getenv(role); spec != "" {
			if err := main(spec); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			os.Exit(0)
		}
	}
	os.Exit(m.Run())
}

// hostMain is an agent host in a process of its own.
func hostMain(spec string) error {
	var o order
	if err := json.Unmarshal([]byte(spec), &o); err != nil {
		return err
	}
	ctx := context.Background()
	kill := func(p string) {
		if p == o.KillAt {
			self, err := os.FindProcess(os.Getpid())
			if err == nil {
				err = self.Kill() // SIGKILL
			}
			if err != nil {
				panic(err)
			}
			time.Sleep(time.Hour) // until the signal arrives
		}
	}
	c, ledger, err := newHost(ctx, o.Origin, o.Ledger, kill)
	if err != nil {
		return err
	}
	defer ledger.Close()
	p, err := plan(o.Origin)
	if err != nil {
		return err
	}
	var mu sync.Mutex
	out := json.NewEncoder(os.Stdout)
	var wg sync.WaitGroup
	for _, id := range o.IDs {
		for range max(1, o.Callers) {
			wg.Go(func() {
				var res client.Result
				var err error
				req := client.Request{Plan: p, Input: inputOf(id), ID: id}
				switch {
				case o.Resume:
					res, err = c.Resume(ctx, id)
				case o.Prepare:
					if _, err = c.Prepare(ctx, req); err == nil {
						res, err = c.Execute(ctx, client.Request{ID: id})
					}
				default:
					res, err = c.Execute(ctx, req)
				}
				r := report{ID: id, Sent: res.Sent, Receipt: res.Receipt}
				if err != nil {
					r.Err = err.Error()
				}
				mu.Lock()
				defer mu.Unlock()
				_ = out.Encode(r)
			})
		}
	}
	wg.Wait()
	return nil
}

// newHost wires ledger, transport and engine as a host program does.
func newHost(ctx context.Context, origin, path string, kill func(point string)) (*client.Client, *sqlite.Ledger, error) {
	if kill == nil {
		kill = func(string) {}
	}
	ledger, err := sqlite.Open(ctx, sqlite.Config{Path: path, KillPoint: kill})
	if err != nil {
		return nil, nil, err
	}
	tr, err := transport.New(transport.Config{Origins: []string{origin}, AllowLoopback: true})
	if err != nil {
		return nil, nil, err
	}
	c, err := client.New(client.Config{Ledger: ledger, Transport: tr, Scope: scope,
		KillPoint: func(p client.Point) { kill(string(p)) }})
	return c, ledger, err
}

var scope = client.Scope{Principal: "ann", Environment: "proof"}

func plan(origin string) (*agentic.Plan, error) {
	return agentic.Load(ticket.Profile(origin), ticket.OpenAPI(origin), "", agentic.Options{AllowLoopback: true})
}

// service is the ticket service on a real loopback socket. It counts the POSTs of
// each request ID: the service itself forgives a second one.
type service struct {
	*ticket.Service
	origin string
	mu     sync.Mutex
	posts  map[string]int
}

// once fails if any request ID was posted twice.
func (s *service) once(t testing.TB) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, n := range s.posts {
		if n != 1 {
			t.Errorf("request %s was posted %d times", id, n)
		}
	}
}

func (s *service) count(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			s.mu.Lock()
			s.posts[r.Header.Get("Idempotency-Key")]++
			s.mu.Unlock()
		}
		h.ServeHTTP(w, r)
	})
}

func serve(t testing.TB, fault ticket.Fault, wrap func(http.Handler) http.Handler) *service {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	origin := "http://" + ln.Addr().String()
	s, err := ticket.Open(t.Context(), ticket.Config{Origin: origin, Fault: fault, Path: filepath.Join(t.TempDir(), "tickets.db")})
	if err != nil {
		t.Fatal(err)
	}
	h := s.Handler()
	if wrap != nil {
		h = wrap(h)
	}
	out := &service{Service: s, origin: origin, posts: map[string]int{}}
	srv := &http.Server{Handler: out.count(h), ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = srv.Serve(ln) }()
	t.Cleanup(func() {
		_ = srv.Close()
		if err := s.Close(); err != nil {
			t.Errorf("closing the service: %v", err)
		}
		out.once(t)
	})
	return out
}

func (s *service) state(t testing.TB) ticket.State {
	t.Helper()
	st, err := s.State(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// process is a host process under way.
type process struct {
	cmd *exec.Cmd
	out *bufio.Scanner
	err *strings.Builder
}

func start(t testing.TB, o order) *process {
	t.Helper()
	spec, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), hostRole+"="+string(spec))
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: cmd, out: bufio.NewScanner(stdout), err: new(strings.Builder)}
	cmd.Stderr = p.err
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _, _ = cmd.Process.Wait() })
	return p
}

// wait gives every report that the process made before it ended, and whether it
// was killed.
func (p *process) wait(t testing.TB) (reports []report, killed bool) {
	t.Helper()
	for p.out.Scan() {
		var r report
		if json.Unmarshal(p.out.Bytes(), &r) == nil {
			reports = append(reports, r)
		}
	}
	if err := p.cmd.Wait(); err != nil {
		status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
		if !ok || !status.Signaled() || status.Signal() != syscall.SIGKILL {
			t.Fatalf("the host process ended with %v: %s", err, p.err)
		}
		return reports, true
	}
	return reports, false
}

// mustReceipts fails on a report that carries an error.
func mustReceipts(t testing.TB, reports []report) {
	t.Helper()
	for _, r := range reports {
		if r.Err != "" {
			t.Errorf("request %s: %s", r.ID, r.Err)
		}
	}
}

// checkLedger proves that every receipt that was returned is in the ledger.
func checkLedger(t testing.TB, path string, reports []report) {
	t.Helper()
	l, err := sqlite.Open(t.Context(), sqlite.Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, r := range reports {
		if r.Err != "" {
			continue
		}
		rec, err := l.Load(t.Context(), scope, r.ID)
		if err != nil {
			t.Errorf("a receipt was returned, but the ledger says: %v", err)
			continue
		}
		found := false
		for _, saved := range rec.Receipts {
			found = found || string(saved.Encode()) == string(r.Receipt.Encode())
		}
		if !found {
			t.Errorf("request %s: a returned receipt is not in the ledger", r.ID)
		}
	}
}
