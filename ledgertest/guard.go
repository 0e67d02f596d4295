package ledgertest

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/desk"
)

// guardTests are about a new request that looks like an earlier one.
var guardTests = []ledgerTest{
	{"a new request is refused while an equal one is open", func(e *ledgerEnv) {
		receive := func(o agentic.Outcome) func(client.Binding) {
			return func(b client.Binding) { e.save(b, o) }
		}
		for i, open := range map[string]func(b client.Binding){
			"prepared":  func(b client.Binding) { e.release(e.begin(b, client.IntendPrepare)) },
			"attempted": func(b client.Binding) { e.release(e.begin(b, client.IntendSubmit)) },
			"held":      func(b client.Binding) { e.Cleanup(releaser(e.begin(b, client.IntendSubmit))) },
			"pending":   receive(agentic.Pending),
			"unknown":   receive(agentic.Unknown),
			"rechecked": func(b client.Binding) { receive(agentic.Unknown)(b); e.note(b, client.Recheck) },
			"window ended": func(b client.Binding) {
				b.Window = time.Microsecond
				receive(agentic.Unknown)(b)
				e.clock.Advance(time.Second)
			},
		} {
			earlier := withInput(binding("request-"+hyphens(i)), i)
			open(earlier)
			e.mustRefuse(withInput(binding("request-new-"+hyphens(i)), i), earlier, 0)
		}
	}},
	{"another principal, environment, origin, action or input is another intent", func(e *ledgerEnv) {
		e.release(e.begin(binding("request-1"), client.IntendPrepare))
		for i, change := range []func(*client.Binding){
			func(b *client.Binding) { b.Scope.Principal = "Alice" },
			func(b *client.Binding) { b.Scope.Principal = "alice " },
			func(b *client.Binding) { b.Scope = client.Scope{Principal: "aliceproduction"} },
			func(b *client.Binding) { b.Scope = client.Scope{Principal: "production", Environment: "alice"} },
			func(b *client.Binding) { b.Scope.Environment = "staging" },
			func(b *client.Binding) { b.Scope.Environment = "" },
			func(b *client.Binding) { b.Origin = "https://support.example:444" },
			func(b *client.Binding) { b.ActionID = "Create-ticket" },
			func(b *client.Binding) { *b = withInput(*b, "another") },
		} {
			b := binding(fmt.Sprintf("request-other-%d", i))
			change(&b)
			e.mustPass(b, client.Guard{On: true, Succeeded: time.Hour})
		}
		// Other documents are no other intent, nor is another way to write the input.
		same := binding("request-same")
		same.Profile, same.OpenAPI, same.Input = document(`{"p":2}`), document(`{"o":2}`), []byte(`{ "subject": "printer" }`)
		e.mustRefuse(same, binding("request-1"), 0)
	}},
	{"what is over without success does not count", func(e *ledgerEnv) {
		for name, end := range map[string]func(b client.Binding){
			"failed":             func(b client.Binding) { e.save(b, agentic.Failed) },
			"prepared, left":     func(b client.Binding) { e.release(e.begin(b, client.IntendPrepare)); e.note(b, client.Abandon) },
			"prepared, replaced": func(b client.Binding) { e.release(e.begin(b, client.IntendPrepare)); e.note(b, client.Supersede) },
			"prepared too long ago": func(b client.Binding) {
				b.Window = time.Minute
				e.release(e.begin(b, client.IntendPrepare))
				e.clock.Advance(time.Minute)
			},
			"left":            func(b client.Binding) { e.save(b, agentic.Unknown); e.note(b, client.Abandon) },
			"replaced":        func(b client.Binding) { e.save(b, agentic.Pending); e.note(b, client.Supersede) },
			"attested failed": func(b client.Binding) { e.release(e.begin(b, client.IntendSubmit)); e.note(b, client.AttestFailed) },
			"attested failed in the end": func(b client.Binding) {
				e.save(b, agentic.Unknown)
				e.note(b, client.AttestSucceeded)
				e.note(b, client.AttestFailed)
			},
		} {
			earlier := withInput(binding("request-"+hyphens(name)), name)
			end(earlier)
			e.mustPass(withInput(binding("request-new-"+hyphens(name)), name), client.Guard{On: true, Succeeded: time.Hour})
		}
	}},
	{"a success counts for as long as the guard says, to the microsecond", func(e *ledgerEnv) {
		for name, succeed := range map[string]func(b client.Binding){
			"verified": func(b client.Binding) { e.save(b, agentic.Succeeded) },
			"attested": func(b client.Binding) { e.save(b, agentic.Unknown); e.note(b, client.AttestSucceeded) },
			"attested in the end": func(b client.Binding) {
				e.save(b, agentic.Unknown)
				e.note(b, client.Abandon)
				e.note(b, client.AttestSucceeded)
			},
			"left and then verified": func(b client.Binding) {
				h := e.begin(b, client.IntendSubmit)
				e.note(b, client.Abandon)
				e.finish(h, nil, receipt(b, agentic.Succeeded))
				e.release(h)
			},
			"made earlier": func(b client.Binding) { // the age counts since it was seen to succeed
				h := e.begin(b, client.IntendSubmit)
				e.clock.Advance(3 * time.Hour)
				e.finish(h, nil, receipt(b, agentic.Succeeded))
				e.release(h)
			},
			"purged": func(b client.Binding) {
				e.save(b, agentic.Succeeded)
				e.purge(client.PurgeOptions{Before: e.clock.Now().Add(time.Microsecond), Apply: true})
			},
			"attested and purged": func(b client.Binding) {
				e.save(b, agentic.Pending)
				e.note(b, client.AttestSucceeded)
				e.purge(client.PurgeOptions{Before: e.clock.Now().Add(time.Microsecond), Apply: true})
			},
		} {
			earlier := withInput(binding("request-"+hyphens(name)), name)
			again := func(n int) client.Binding {
				return withInput(binding(fmt.Sprintf("request-%s-%d", hyphens(name), n)), name)
			}
			succeed(earlier)
			e.mustRefuse(again(1), earlier, time.Microsecond)
			e.clock.Advance(time.Hour - time.Microsecond)
			e.mustRefuse(again(2), earlier, time.Hour)
			e.clock.Advance(time.Microsecond)
			e.mustRefuse(again(3), earlier, time.Hour+time.Microsecond)
			e.mustPass(again(4), client.Guard{On: true, Succeeded: time.Hour})
		}
	}},
	{"without a time, no success counts, also when the clock goes back", func(e *ledgerEnv) {
		b := binding("request-1")
		e.save(b, agentic.Succeeded)
		e.clock.Advance(-time.Minute)
		e.mustRefuse(binding("request-2"), b, time.Microsecond)
		e.mustPass(binding("request-3"), client.Guard{On: true})
	}},
	{"a guard that is off refuses nothing", func(e *ledgerEnv) {
		for i := range 3 {
			e.mustPass(binding(fmt.Sprintf("request-%d", i)), client.Guard{Succeeded: time.Hour})
		}
		e.equal("requests", 3, len(e.list(client.Filter{})))
	}},
	{"the newest of the equal ones is named", func(e *ledgerEnv) {
		for i, o := range []agentic.Outcome{agentic.Pending, agentic.Succeeded, agentic.Failed} {
			e.save(binding(fmt.Sprintf("request-%d", i)), o)
			e.clock.Advance(time.Second)
		}
		e.mustRefuse(binding("request-8"), binding("request-1"), time.Hour)
		e.mustRefuse(binding("request-9"), binding("request-0"), 0)
	}},
	{"the same ID again is no duplicate of itself", func(e *ledgerEnv) {
		b := binding("request-1")
		b.Guard = client.Guard{On: true, Succeeded: time.Hour}
		e.release(e.begin(b, client.IntendPrepare))
		e.release(e.begin(b, client.IntendSubmit))
		e.save(b, agentic.Succeeded)
		e.release(e.begin(b, client.IntendSubmit))
		e.release(e.take(b, client.IntendSubmit))

		other := withInput(b, "another") // and of another binding it is what it was
		if _, err := e.ledger.Begin(e.ctx, other, client.IntendSubmit, 0); !isA[*client.BindingError](err) {
			e.Fatalf("Begin of another binding: %v", err)
		}
	}},
	{"a refused request leaves nothing, and its ID is free", func(e *ledgerEnv) {
		earlier := binding("request-1")
		e.release(e.begin(earlier, client.IntendPrepare))
		before := e.load(earlier)
		refused := binding("request-2")
		refused.Profile, refused.OpenAPI = document(`{"p":"only here"}`), document(`{"o":"only here"}`)
		e.clock.Advance(time.Minute)
		e.mustRefuse(refused, earlier, 0)
		e.equal("the earlier one", before, e.load(earlier))
		e.equal("listed", []string{"request-1"}, ids(e.list(client.Filter{})))
		e.equal("would be purged", client.Purged{}, e.purge(client.PurgeOptions{Before: before.SeenAt}))

		refused.Guard = client.Guard{On: true}
		refused = withInput(refused, "something else")
		h := e.begin(refused, client.IntendSubmit)
		e.equal("may submit", true, h.MaySubmit())
		e.release(h)
		refused.Guard = client.Guard{}
		e.equal("binding", refused, e.load(refused).Binding)
	}},
	{"of two equal ones at once, exactly one is made", func(e *ledgerEnv) {
		handles := []desk.Ledger{e.ledger, e.open()}
		for round := range 50 {
			var errs [2]error
			var holds [2]client.Hold
			var wg sync.WaitGroup
			for i, l := range handles {
				wg.Go(func() {
					b := withInput(binding(fmt.Sprintf("request-%02d-%d", round, i)), fmt.Sprint(round))
					b.Guard, b.Fresh = client.Guard{On: true}, round%2 == 0
					holds[i], errs[i] = l.Begin(e.ctx, b, client.IntendSubmit, time.Minute)
				})
			}
			wg.Wait()
			won := 0
			if errs[0] != nil {
				won = 1
			}
			if errs[won] != nil || !holds[won].MaySubmit() {
				e.Fatalf("round %d: nobody was let in: %v, %v", round, errs[0], errs[1])
			}
			e.release(holds[won])
			var dup *client.DuplicateError
			if lost := 1 - won; !errors.As(errs[lost], &dup) || dup.Earlier.RequestID != fmt.Sprintf("request-%02d-%d", round, won) {
				e.Fatalf("round %d: both were let in, or the wrong one is named: %v", round, errs[lost])
			}
		}
		e.equal("requests", 50, len(e.list(client.Filter{})))
	}},
}

// mustRefuse checks that a guard refuses a new request on two handles, whatever the
// intent, and that the error names the earlier one.
func (e *ledgerEnv) mustRefuse(b, earlier client.Binding, succeeded time.Duration) {
	e.Helper()
	b.Guard = client.Guard{On: true, Succeeded: succeeded}
	want := &client.DuplicateError{RequestID: b.RequestID, Earlier: e.summary(earlier)}
	for _, l := range []desk.Ledger{e.ledger, e.open()} {
		for _, intent := range []client.Intent{client.IntendPrepare, client.IntendSubmit} {
			b.Fresh = !b.Fresh
			h, err := l.Begin(e.ctx, b, intent, 0)
			var dup *client.DuplicateError
			if h != nil || !errors.As(err, &dup) {
				e.Fatalf("Begin of a duplicate of %s: %v, %v", earlier.RequestID, h, err)
			}
			e.equal("error", want, dup)
			if _, err := l.Load(e.ctx, b.Scope, b.RequestID); !isNotFound(err, b.Scope, b.RequestID) {
				e.Fatalf("Load of what was refused: %v", err)
			}
		}
	}
}

// mustPass checks that a guard lets a new request through.
func (e *ledgerEnv) mustPass(b client.Binding, g client.Guard) {
	e.Helper()
	b.Guard = g
	h, err := e.ledger.Begin(e.ctx, b, client.IntendSubmit, 0)
	if err != nil {
		e.Fatalf("Begin of %s: %v", b.RequestID, err)
	}
	e.equal("may submit "+b.RequestID, true, h.MaySubmit())
	e.release(h)
}

// withInput is the request with another input.
func withInput(b client.Binding, text string) client.Binding {
	b.Input = fmt.Appendf(nil, `{"subject":%q}`, text)
	b.InputDigest = digest(string(b.Input))
	return b
}

// hyphens makes a name usable in a request ID.
func hyphens(name string) string {
	id := []byte(name)
	for i, c := range id {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			id[i] = '-'
		}
	}
	return string(id)
}

func releaser(h client.Hold) func() { return func() { _ = h.Release() } }

func isA[E error](err error) bool { _, ok := errors.AsType[E](err); return ok }
