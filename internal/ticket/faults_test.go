package ticket

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/internal/pgtest"
	"github.com/agentic-go/agentic/internal/strictjson"
)

func TestFaultNames(t *testing.T) {
	want := "normal response-lost status-unavailable stale-read wrong-evidence pending late failed wrong-state wrong-input " +
		"wrong-resource other-request malformed-status duplicate-members html-status redirect oversized compressed slow dot-resource-id expired"
	var names []string
	for _, f := range Faults() {
		names = append(names, f.Name)
		if f.Summary == "" || !f.Outcome.Valid() {
			t.Errorf("incomplete: %+v", f)
		}
		parsed, err := ParseFault(f.Name)
		equal(t, f.Name, string(parsed), f.Name)
		equal(t, f.Name, err, nil)
	}
	equal(t, "names", strings.Join(names, " "), want)
	for _, name := range []string{"", "Normal", "slow "} {
		_, err := ParseFault(name)
		if err == nil || !strings.Contains(err.Error(), "dot-resource-id") {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// What a fault is not about stays right: submission, repeat, conflict, refusal,
// documents, and a status that was never asked for.
func TestFaultsBreakOneThing(t *testing.T) {
	onBoth(t, testFaultsBreakOneThing)
}

func testFaultsBreakOneThing(t *testing.T, cfg Config) {
	for _, f := range Faults() {
		cfg := cfg
		cfg.Fault = Fault(f.Name)
		if cfg.Postgres != "" {
			twist := faultOf(t, f.Name).twist()
			if twist.serve != nil && twist.decide == nil {
				continue // it is of the wire, which has no database
			}
			cfg.Postgres = pgtest.Shared(t).NewDatabase(t)
		}
		t.Run(f.Name, func(t *testing.T) {
			s := start(t, cfg)
			first, err := s.try(http.MethodPost, "/tickets", subject, "Idempotency-Key: k")
			wantFirst, wantRepeat, tickets := 201, 200, 1
			switch f.Name {
			case "response-lost":
				equal(t, "reset", errors.Is(err, syscall.ECONNRESET), true)
				err, first.code = nil, 201
			case "pending", "late":
				wantFirst, wantRepeat, tickets = 202, 202, 0
			case "failed":
				wantFirst, wantRepeat, tickets = 422, 422, 0
			case "expired":
				wantRepeat = 409
			}
			equal(t, "error", err, nil)
			equal(t, "first", first.code, wantFirst)
			equal(t, "repeat", s.post("k", subject).code, wantRepeat)
			equal(t, "conflict", s.post("k", `{"subject":"other"}`).code, 409)
			equal(t, "invalid", s.post("bad", `{}`).code, 422)
			equal(t, "no key", s.do(http.MethodPost, "/tickets", subject).code, 400)
			s.wantState(State{Posts: 5, Tickets: tickets, Requests: 2})
			if _, err := agentic.Load([]byte(s.get("/agentic.json").body), []byte(s.get("/openapi.json").body), "", agentic.Options{AllowLoopback: true}); err != nil {
				t.Error(err)
			}
		})
	}
}

func faultOf(t *testing.T, name string) faultSpec {
	t.Helper()
	spec, err := Fault(name).spec()
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

// seen is one status check and, when it names a ticket, one read of it, judged
// like a client would.
func (s *server) seen(key string) (status, ticket got) {
	s.t.Helper()
	status = s.get("/requests/" + key)
	if status.code == 200 && status.member("status") == "succeeded" {
		ticket = s.get("/tickets/" + status.member("resource_id"))
	}
	return status, ticket
}

func TestFaultsOfTheTicket(t *testing.T) {
	right := map[string]string{"id": "T-1", "request_id": "k", "subject": "Printer on fire", "status": "open"}
	for fault, wrong := range map[string][]string{
		"normal": nil, "response-lost": nil,
		"wrong-evidence": {"request_id", "subject", "status"}, "wrong-state": {"status"}, "wrong-input": {"subject"},
		"wrong-resource": {"id"}, "other-request": {"request_id"},
	} {
		t.Run(fault, func(t *testing.T) {
			s := start(t, Config{Fault: Fault(fault)})
			_, _ = s.try(http.MethodPost, "/tickets", subject, "Idempotency-Key: k")
			for range 2 {
				_, ticket := s.seen("k")
				equal(t, "code", ticket.code, 200)
				for name, value := range right {
					spoilt := strings.Contains(" "+strings.Join(wrong, " ")+" ", " "+name+" ")
					if have := ticket.member(name); have == "" || (have != value) != spoilt {
						t.Errorf("%s is %q", name, have)
					}
				}
			}
			s.wantState(State{Posts: 1, Tickets: 1, Requests: 1, Reads: 4})
		})
	}
}

func TestStaleRead(t *testing.T) {
	s := start(t, Config{Fault: "stale-read"})
	for _, key := range []string{"a", "b"} {
		s.post(key, subject)
		_, ticket := s.seen(key)
		equal(t, "first read", ticket.code, 404)
		_, ticket = s.seen(key)
		equal(t, "second read", []any{ticket.code, ticket.member("status")}, []any{200, "new"})
		for range 2 {
			_, ticket = s.seen(key)
			equal(t, "later read", []any{ticket.code, ticket.member("status")}, []any{200, "open"})
		}
	}
}

func TestDecisionsThatTakeTheirTime(t *testing.T) {
	onBoth(t, testDecisions)
}

func testDecisions(t *testing.T, cfg Config) {
	for fault, words := range map[string]string{
		"pending": "pending pending pending pending", "late": "pending pending succeeded succeeded", "failed": "failed failed failed failed",
		"expired": "unknown unknown unknown unknown",
	} {
		t.Run(fault, func(t *testing.T) {
			cfg := cfg
			cfg.Fault = Fault(fault)
			if cfg.Postgres != "" {
				cfg.Postgres = pgtest.Shared(t).NewDatabase(t)
			}
			s := start(t, cfg)
			first := s.post("k", subject)
			if first.code == 202 {
				equal(t, "Location", first.header.Get("Location"), "/requests/k")
				equal(t, "Retry-After", first.header.Get("Retry-After"), "1")
				equal(t, "answer", first.body, `{"request_id":"k","status":"pending","resource_id":null}`+"\n")
			}
			var have []string
			for range 4 {
				have = append(have, s.get("/requests/k").member("status"))
			}
			equal(t, "status", strings.Join(have, " "), words)
			tickets := 0
			if fault == "late" {
				tickets = 1
				equal(t, "repeat", s.post("k", subject).code, 200)
				equal(t, "ticket", s.get("/tickets/T-1").member("request_id"), "k")
			}
			if fault == "expired" {
				tickets = 1
			}
			state, err := s.svc.State(context.Background())
			equal(t, "error", err, nil)
			equal(t, "tickets", state.Tickets, tickets)
		})
	}
}

func TestFaultsOfTheStatus(t *testing.T) {
	for fault, check := range map[string]func(*testing.T, *server, got){
		"status-unavailable": func(t *testing.T, _ *server, g got) { wantProblem(t, g, 503, "status") },
		"malformed-status": func(t *testing.T, _ *server, g got) {
			_, err := strictjson.Parse([]byte(g.body))
			equal(t, "malformed", []any{g.code, errors.Is(err, strictjson.ErrSyntax)}, []any{200, true})
		},
		"duplicate-members": func(t *testing.T, _ *server, g got) {
			_, err := strictjson.Parse([]byte(g.body))
			equal(t, "duplicate", []any{g.code, errors.Is(err, strictjson.ErrDuplicateMember)}, []any{200, true})
		},
		"html-status": func(t *testing.T, _ *server, g got) {
			equal(t, "page", []any{g.code, g.header.Get("Content-Type")}, []any{200, "text/html; charset=utf-8"})
		},
		"redirect": func(t *testing.T, s *server, g got) {
			equal(t, "redirect", g.code, 307)
			equal(t, "target", s.get(g.header.Get("Location")).member("resource_id"), "T-1")
		},
		"oversized": func(t *testing.T, _ *server, g got) {
			equal(t, "oversized", []any{g.code, len(g.body) > agentic.MaxResponseBytes, g.member("status")}, []any{200, true, "succeeded"})
		},
		"compressed": func(t *testing.T, _ *server, g got) {
			equal(t, "coding", []any{g.code, g.header.Get("Content-Encoding")}, []any{200, "gzip"})
			z, err := gzip.NewReader(strings.NewReader(g.body))
			if err != nil {
				t.Fatal(err)
			}
			plain, err := io.ReadAll(z)
			equal(t, "error", err, nil)
			equal(t, "plain", got{body: string(plain)}.member("status"), "succeeded")
		},
		"dot-resource-id": func(t *testing.T, _ *server, g got) {
			equal(t, "answer", g.body, `{"request_id":"k/m","status":"succeeded","resource_id":".."}`+"\n")
		},
	} {
		t.Run(fault, func(t *testing.T) {
			s := start(t, Config{Fault: Fault(fault)})
			s.post("k/m", subject)
			for range 2 {
				check(t, s, s.get("/requests/k%2Fm"))
			}
			equal(t, "the ticket is there", s.get("/tickets/T-1").member("request_id"), "k/m")
		})
	}
}

// A key may look like the path that the fault redirects to.
func TestRedirectOfOddKeys(t *testing.T) {
	s := start(t, Config{Fault: "redirect"})
	for _, key := range []string{"moved", "%2Fmoved", "a b"} {
		path := "/requests/" + strings.ReplaceAll(key, " ", "%20")
		g := s.get(path)
		equal(t, key, []any{g.code, g.header.Get("Location")}, []any{307, path + "/moved"})
		equal(t, key, s.get(path+"/moved").member("status"), "unknown")
	}
}

func TestSlowEndsWithItsClient(t *testing.T) {
	s := start(t, Config{Fault: "slow"})
	s.post("k", subject)
	plan, err := agentic.Load([]byte(s.get("/agentic.json").body), OpenAPI(s.origin), "", agentic.Options{AllowLoopback: true})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "advertised", plan.Action.Recovery.Timeout, slowTimeout)
	began := time.Now()
	s.client.Timeout = slowTimeout
	if g, err := s.try("GET", "/requests/k", ""); err == nil {
		t.Errorf("answered in time: %+v", g)
	}
	s.client.Timeout = time.Minute
	if d := time.Since(began); d > 5*slowTimeout {
		t.Errorf("the client waited %s", d)
	}
	equal(t, "status", s.get("/requests/k").member("status"), "succeeded")
	if d := time.Since(began); d < 10*slowTimeout {
		t.Errorf("the status took only %s", d)
	}
}
