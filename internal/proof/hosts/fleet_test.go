//go:build unix

package hosts

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/fleet"
	"github.com/agentic-go/agentic/internal/pgtest"
	"github.com/agentic-go/agentic/postgres"
	"github.com/agentic-go/agentic/reconcile"
)

// requests is how many the fleet tries; AGENTIC_PROOF_REQUESTS asks for more.
func requests(t *testing.T) int {
	t.Helper()
	const least = 1000
	text := os.Getenv("AGENTIC_PROOF_REQUESTS")
	if text == "" {
		return least
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least {
		t.Fatalf("AGENTIC_PROOF_REQUESTS is a number of at least %d", least)
	}
	return n
}

const (
	hostCount = 3
	lease     = 3 * time.Second
)

// driven is a host process that is killed, started again, paused and cut off.
type driven struct {
	t     *testing.T
	order order
	ns    namespace
	pg    *proxy
	mu    sync.Mutex
	cmd   *exec.Cmd
	errs  *strings.Builder
}

func (d *driven) start() {
	d.mu.Lock()
	defer d.mu.Unlock()
	spec, err := json.Marshal(d.order)
	if err != nil {
		panic(err)
	}
	d.cmd = d.ns.command(os.Args[0])
	d.cmd.SysProcAttr = diesWithTest
	d.cmd.Env = append(os.Environ(), hostRole+"="+string(spec))
	d.errs = new(strings.Builder)
	d.cmd.Stderr = d.errs
	if err := d.cmd.Start(); err != nil {
		panic(err)
	}
}

func (d *driven) signal(s os.Signal) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.cmd.Process.Signal(s); err != nil {
		d.t.Errorf("host %s ended by itself: %v: %s", d.order.Name, err, d.errs)
	}
}

// kill kills the process and waits for its end.
func (d *driven) kill() {
	d.signal(syscall.SIGKILL)
	d.mu.Lock()
	defer d.mu.Unlock()
	err := d.cmd.Wait()
	if status, ok := d.cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || !status.Signaled() {
		d.t.Errorf("host %s ended by itself: %v: %s", d.order.Name, err, d.errs)
	}
}

// done reports whether the host has tried every request.
func (d *driven) done() bool {
	log, err := readLog(d.order.Log)
	return err == nil && log[""] != nil
}

// chaos disturbs the hosts one after the other until stop is closed, and counts
// what it did.
type chaos struct {
	kills, pauses, cuts, silences, partitions, terminations, restarts atomic.Int64
}

func (c *chaos) String() string {
	return fmt.Sprintf("%d kills, %d pauses past the lease, %d cuts from the database, %d silent ones, %d cut links, %d terminations of all sessions, %d restarts of the server",
		c.kills.Load(), c.pauses.Load(), c.cuts.Load(), c.silences.Load(), c.partitions.Load(), c.terminations.Load(), c.restarts.Load())
}

// complete reports whether every kind that can always be made has come up: a run
// that nothing disturbed proves nothing.
func (c *chaos) complete() bool {
	for _, n := range []*atomic.Int64{&c.kills, &c.pauses, &c.cuts, &c.silences, &c.terminations, &c.restarts} {
		if n.Load() == 0 {
			return false
		}
	}
	return true
}

func (c *chaos) run(t *testing.T, hosts []*driven, server *pgtest.Cluster, admin *pgxpool.Pool, seed uint64, stop <-chan struct{}) {
	r := rand.New(rand.NewPCG(seed, 2))
	pause := func(d time.Duration) {
		select {
		case <-stop:
		case <-time.After(d):
		}
	}
	between := func(least, most time.Duration) time.Duration {
		return least + time.Duration(r.Int64N(int64(most-least)))
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	busy := make([]atomic.Bool, len(hosts))
	for n := 1; ; n++ {
		select {
		case <-stop:
			return
		default:
		}
		pause(between(300*time.Millisecond, 1200*time.Millisecond))
		switch { // now and then it is the server's turn
		case n%20 == 8:
			c.restarts.Add(1)
			server.Restart(t, pgtest.Immediate)
			continue
		case n%10 == 4:
			if terminateAll(t, admin) {
				c.terminations.Add(1)
			}
			continue
		}
		i, what, length := r.IntN(len(hosts)), n%5, between(lease, 2*lease)
		if !busy[i].CompareAndSwap(false, true) {
			if i = (i + 1) % len(hosts); !busy[i].CompareAndSwap(false, true) {
				continue // one of them is left alone
			}
		}
		d := hosts[i]
		wg.Go(func() {
			defer busy[i].Store(false)
			switch {
			case what == 0:
				c.kills.Add(1)
				d.kill()
				d.start()
			case what == 1:
				c.pauses.Add(1)
				d.signal(syscall.SIGSTOP)
				pause(length)
				d.signal(syscall.SIGCONT)
			case what == 2:
				c.cuts.Add(1)
				d.pg.set(cut)
				pause(length)
				d.pg.set(open)
			case what == 3:
				c.silences.Add(1)
				d.pg.set(silent)
				pause(length)
				d.pg.set(open)
			case d.ns.name != "":
				c.partitions.Add(1)
				if err := errors.Join(ip("link", "set", d.ns.link, "down")); err != nil {
					t.Error(err)
				}
				pause(length)
				if err := errors.Join(ip("link", "set", d.ns.link, "up")); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// terminateAll ends every session but its own. The server may be too busy for it.
func terminateAll(t *testing.T, admin *pgxpool.Pool) bool {
	_, err := admin.Exec(t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`)
	return err == nil
}

// TestFleet has three hosts try every request, and kills, pauses and cuts off each
// of them, and the server too. At most one POST arrives for a request ID, no
// receipt comes from a stale holder, and every request ends verified, refused by the
// service, or at the desk with the right reason (sections 6.3, 6.4, 6.9; D9, D16).
func TestFleet(t *testing.T) {
	n := requests(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	server := pgtest.Start(t)
	database := server.NewDatabase(t)
	admin := newPool(t, database)
	if err := errors.Join(postgres.MigrateLedger(t.Context(), admin, ""), fleet.Migrate(t.Context(), admin, "")); err != nil {
		t.Fatal(err)
	}
	audit(t, admin)
	s := serve(t, 6*time.Second)
	_, servicePort, _ := net.SplitHostPort(strings.TrimPrefix(s.origin, "http://"))
	socket := socketOf(t, database)

	dir := t.TempDir()
	var hosts []*driven
	for i := range hostCount {
		ns, err := newNamespace(t, i)
		if err != nil {
			t.Logf("host %d is a process in the test's own namespace: %v", i, err)
		}
		pg := newProxy(t, ns.reach()+":0", socket)
		d := &driven{t: t, ns: ns, pg: pg, order: order{
			Name: strconv.Itoa(i), Origin: s.origin, Database: through(t, database, pg.ln.Addr().String()),
			Requests: n, Callers: 32, Lease: lease, Log: filepath.Join(dir, strconv.Itoa(i)), Seed: seed + uint64(i),
		}}
		if ns.name != "" {
			outside := newProxy(t, ns.reach()+":0", [2]string{"tcp", "127.0.0.1:" + servicePort})
			d.order.Forward = map[string]string{"127.0.0.1:" + servicePort: outside.ln.Addr().String()}
		}
		hosts = append(hosts, d)
		d.start()
	}
	killAll := sync.OnceFunc(func() {
		for _, d := range hosts {
			d.kill()
		}
	})
	t.Cleanup(killAll)

	began := time.Now()
	stop, c := make(chan struct{}), new(chaos)
	var wg sync.WaitGroup
	wg.Go(func() { c.run(t, hosts, server, admin, seed, stop) })
	limit := 2*time.Minute + time.Duration(n)*120*time.Millisecond
	for tried := 0; tried < len(hosts) || !c.complete(); {
		time.Sleep(200 * time.Millisecond)
		if tried = 0; time.Since(began) > limit {
			close(stop)
			wg.Wait()
			for _, d := range hosts {
				log, err := readLog(d.order.Log)
				t.Logf("host %s has tried %d requests (%v): %s", d.order.Name, len(log), err, d.errs)
			}
			t.Fatalf("not every host has tried every request, under every kind of disturbance, after %v: %v", limit, c)
		}
		for _, d := range hosts {
			if d.done() {
				tried++
			}
		}
	}
	close(stop)
	wg.Wait()
	t.Logf("%d requests by %d hosts in %v: %v", n, hostCount, time.Since(began).Round(time.Second), c)

	// Left alone, the workers settle what can be settled.
	last := openHostWith(t, database, s.origin, nil)
	settled := time.Now()
	for left := -1; ; time.Sleep(500 * time.Millisecond) {
		list, err := last.ledger.List(t.Context(), client.Filter{Open: true}.In(scope))
		if err != nil {
			t.Fatal(err)
		}
		left = 0
		for _, sum := range list {
			if _, arrived := s.arrived(sum.RequestID); arrived && settles(kindOf(sum.RequestID)) {
				left++
			}
		}
		if left == 0 {
			break
		}
		if time.Since(settled) > 3*time.Minute {
			t.Fatalf("the workers left %d requests open that the service would settle", left)
		}
	}
	t.Logf("the workers settled the rest in %v", time.Since(settled).Round(time.Second))

	// A day later what is still open goes to the desk. The hosts are gone, and what
	// they held is free when its lease has ended.
	killAll()
	time.Sleep(lease)
	tomorrow := openHostWith(t, database, s.origin, func() time.Time { return time.Now().Add(25 * time.Hour) })
	w, err := tomorrow.worker()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Pass(t.Context(), reconcile.PassOptions{}, nil); err != nil {
		t.Fatal(err)
	}
	checkEnd(t, tomorrow, s, n)
	checkReports(t, hosts, n)
	checkAudit(t, admin)
}

// settles reports whether the service ends requests of this kind.
func settles(k kind) bool { return k != wrong && k != forgets }

// checkEnd holds every request against what the service knows of it.
func checkEnd(t *testing.T, h *host, s *service, n int) {
	t.Helper()
	ends := map[string]int{}
	for i := range n {
		id := requestID(i)
		rec, err := h.ledger.Load(t.Context(), scope, id)
		if err != nil {
			t.Error(err)
			continue
		}
		e, arrived := s.arrived(id)
		if e.posts > 1 {
			t.Errorf("%s (%s): %d POSTs", id, kindOf(id), e.posts)
		}
		for j, r := range rec.Receipts {
			if r.Outcome.Final() && j < len(rec.Receipts)-1 {
				t.Errorf("%s: a receipt after %s", id, r.Outcome)
			}
		}
		last, sum := rec.Last(), rec.Summary()
		if last == nil {
			t.Errorf("%s (%s): no receipt", id, kindOf(id))
			continue
		}
		desk := sum.NeedsPerson(time.Now().Add(25*time.Hour)) && last.Outcome == agentic.Unknown && strings.Contains(last.Reason, "window")
		end := string(last.Outcome)
		if desk {
			end = "desk"
		}
		want := "desk"
		switch k := kindOf(id); {
		case arrived && k == refused:
			want = "failed"
		case arrived && settles(k):
			want = "succeeded"
		}
		if end != want {
			t.Errorf("%s (%s, arrived %v): ended as %s (%s), want %s", id, kindOf(id), arrived, end, last.Reason, want)
		}
		if last.Outcome == agentic.Succeeded && (last.ResourceID == nil || *last.ResourceID != resourceID(id) || `{"subject":"`+e.subject+`"}` != inputOf(id)) {
			t.Errorf("%s: succeeded with another resource or input", id)
		}
		if !arrived {
			end += ", never arrived"
		}
		ends[end]++
	}
	t.Logf("ends: %v", ends)
}

// checkReports holds what the hosts said against each other.
func checkReports(t *testing.T, hosts []*driven, n int) {
	t.Helper()
	sent := map[string]int{}
	var total report
	held := 0
	for _, d := range hosts {
		log, err := readLog(d.order.Log)
		if err != nil {
			t.Fatal(err)
		}
		if len(log) != n+1 {
			t.Errorf("host %s tried %d of %d requests", d.order.Name, len(log)-1, n)
		}
		for id, r := range log {
			if r.Err != "" {
				t.Errorf("host %s, %s: %s", d.order.Name, id, r.Err)
			}
			if r.Sent {
				sent[id]++
			}
			if r.Held {
				held++
			}
			total.Lost += r.Lost
			total.Ledger += r.Ledger
		}
	}
	for id, times := range sent {
		if times > 1 {
			t.Errorf("%s: %d hosts say that they sent it", id, times)
		}
	}
	t.Logf("tries: %d ended with a lost hold, %d with an unavailable ledger, %d requests were held by another host", total.Lost, total.Ledger, held)
}

func openHostWith(t *testing.T, database, origin string, clock func() time.Time) *host {
	t.Helper()
	h, err := openHost(t.Context(), origin, database, lease, clock)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.ledger.Close(); h.pool.Close() })
	return h
}
