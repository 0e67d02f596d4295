package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/agentic-go/agentic/service"
)

// settleTests are about what a request was bound to and what came of it.
func settleTests[Tx any]() []storeTest[Tx] {
	accepted := service.Settlement{Status: 202, Body: []byte(`{"status":"pending"}`)}
	done := service.Settlement{ResourceID: "T1", Status: 201, Body: []byte(`{"id":"T1"}`)}
	refused := service.Settlement{Status: 422, Body: []byte(`{"reason":"out of stock"}`)}
	return []storeTest[Tx]{
		{"a repeat gets what is tracked and changes nothing", func(e *storeEnv[Tx]) {
			for state, a := range map[service.State]service.Settlement{service.Done: done, service.Refused: refused, service.Pending: accepted} {
				k := trackingKey("request-" + string(state))
				e.settled(k, fingerprintOf("one"), window, state, a)
				want := e.mustFind(k, fingerprintOf("one"), state, a)
				for _, input := range []string{"one", "two"} { // a conflict as well as a repeat
					var claimed, found *service.Record
					err := e.store.Transact(e.ctx, func(ctx context.Context, tx Tx) (err error) {
						if claimed, err = e.store.Claim(ctx, tx, k, fingerprintOf(input), 2*window); err != nil {
							return err
						}
						found, err = e.store.FindIn(ctx, tx, k)
						return err
					})
					if err != nil {
						e.Fatal(err)
					}
					e.equal("record of a claim", want, claimed)
					e.equal("record in a transaction", want, found)
					e.equal("record afterwards", want, e.find(k))
				}
			}
		}},
		{"times are the database's, with microseconds, in UTC", func(e *storeEnv[Tx]) {
			for _, w := range []time.Duration{time.Minute, 604800 * time.Second, 90*time.Second + time.Microsecond} {
				k := trackingKey("request-" + w.String())
				e.settled(k, fingerprintOf("one"), w, service.Done, done)
				r := e.find(k)
				e.equal("window", w, r.ExpiresAt.Sub(r.CreatedAt))
				for _, t := range []time.Time{r.CreatedAt, r.ExpiresAt} {
					if t.Location() != time.UTC || t.Nanosecond()%1000 != 0 {
						e.Errorf("time %v", t)
					}
				}
			}
		}},
		{"what was never claimed or is settled is not pending", func(e *storeEnv[Tx]) {
			for state, a := range map[service.State]service.Settlement{service.Done: done, service.Refused: refused} {
				k := trackingKey("request-" + string(state))
				e.notPending(e.settle(e.store, k, service.Done, done))
				e.mustNotBe(k)
				e.settled(k, fingerprintOf("one"), window, state, a)
				for _, to := range []service.State{service.Done, service.Refused, service.Pending} {
					e.notPending(e.settle(e.store, k, to, accepted))
				}
				e.mustFind(k, fingerprintOf("one"), state, a)
			}
			foreign := trackingKey("request-1")
			e.settled(foreign, fingerprintOf("one"), window, service.Pending, accepted)
			for _, k := range []service.Key{
				{Principal: "bob", Action: foreign.Action, RequestID: foreign.RequestID},
				{Principal: foreign.Principal, Action: "close-ticket", RequestID: foreign.RequestID},
			} {
				e.notPending(e.settle(e.store, k, service.Done, done))
			}
			e.mustFind(foreign, fingerprintOf("one"), service.Pending, accepted)
		}},
		{"what is pending is settled once", func(e *storeEnv[Tx]) {
			for state, a := range map[service.State]service.Settlement{service.Done: done, service.Refused: refused} {
				k := trackingKey("request-" + string(state))
				e.settled(k, fingerprintOf("one"), window, service.Pending, accepted)
				before := e.mustFind(k, fingerprintOf("one"), service.Pending, accepted)
				no := errors.New("no")
				err := e.store.Transact(e.ctx, func(ctx context.Context, tx Tx) error {
					if err := e.store.Settle(ctx, tx, k, state, a); err != nil {
						return err
					}
					return no
				})
				if err != no {
					e.Fatal(err)
				}
				e.mustFind(k, fingerprintOf("one"), service.Pending, accepted)

				stores := []service.Store[Tx]{e.store, e.open().Store}
				var settled atomic.Int32
				each(8, func(i int) {
					switch err := e.settle(stores[i%2], k, state, a); {
					case err == nil:
						settled.Add(1)
					case !errors.Is(err, service.ErrNotPending):
						e.Errorf("Settle: %v", err)
					}
				})
				e.equal("settlements", int32(1), settled.Load())
				after := e.mustFind(k, fingerprintOf("one"), state, a)
				e.equal("times", []time.Time{before.CreatedAt, before.ExpiresAt}, []time.Time{after.CreatedAt, after.ExpiresAt})
			}
		}},
		{"a transaction of the publisher's own completes", func(e *storeEnv[Tx]) {
			k := trackingKey("request-1")
			e.settled(k, fingerprintOf("one"), window, service.Pending, accepted)
			tx, end, err := e.handle.Begin(e.ctx)
			if err != nil {
				e.Fatal(err)
			}
			settleErr := errors.Join(e.Insert(e.ctx, tx, "one"), e.store.Settle(e.ctx, tx, k, service.Done, done))
			again := e.store.Settle(e.ctx, tx, k, service.Done, done)
			found, findErr := e.store.FindIn(e.ctx, tx, k)
			if err := errors.Join(settleErr, findErr, end(true)); err != nil {
				e.Fatal(err)
			}
			e.notPending(again)
			e.equal("record", e.mustFind(k, fingerprintOf("one"), service.Done, done), found)
			e.mustHaveRows("one")
		}},
		{"only an outcome settles", func(e *storeEnv[Tx]) {
			k := trackingKey("request-1")
			e.settled(k, fingerprintOf("one"), window, service.Pending, accepted)
			for _, to := range []service.State{"", service.Claimed, service.Expired, "other"} {
				if err := e.settle(e.store, k, to, done); err == nil {
					e.Errorf("a request was settled as %q", to)
				}
			}
			e.mustFind(k, fingerprintOf("one"), service.Pending, accepted)
		}},
		{"an answer is kept byte for byte", func(e *storeEnv[Tx]) {
			every := make([]byte, 256)
			for i := range every {
				every[i] = byte(i)
			}
			for name, a := range map[string]service.Settlement{
				"empty":   {ResourceID: "T1", Status: 204},
				"omitted": {ResourceID: "T1", Status: 201, BodyOmitted: true},
				"null":    {Status: 200, Body: []byte{0}},
				"bytes":   {ResourceID: "é/%2F \u2028\\'\"", Status: 299, Body: every},
				"bound":   {ResourceID: strings.Repeat("é", 500), Status: 201, Body: bytes.Repeat(every, 64)},
				"beyond":  {ResourceID: "T1", Status: 201, Body: bytes.Repeat(every, 4096)},
			} {
				k := trackingKey(name)
				e.settled(k, fingerprintOf(name), window, service.Done, a)
				e.mustFind(k, fingerprintOf(name), service.Done, a)
			}
		}},
	}
}

func (e *storeEnv[Tx]) notPending(err error) {
	e.Helper()
	if !errors.Is(err, service.ErrNotPending) {
		e.Errorf("Settle: %v, want ErrNotPending", err)
	}
}

// keyTests are about keys that are not the same, however alike they are.
func keyTests[Tx any]() []storeTest[Tx] {
	return []storeTest[Tx]{
		{"request IDs", func(e *storeEnv[Tx]) {
			ids := []string{
				"key", "Key", "KEY", "key-", "key_", "key%", "k%y", "k_y", "%%%", "___", "key*", "k?y", "[k]ey", "\\key", "k\\ey", "key\\",
				"'key'", `"key"`, "key;--", "$1", ":key", "@key", "0", "00", "0.0", "1e0", "null", "NULL", "true", "{}", "..key",
				long("a"), long("b"), long("A"), long("a")[:127], long("a")[1:] + "%",
			}
			for c := byte('!'); c <= '~'; c++ { // every visible character
				ids = append(ids, string([]byte{c, 'x'}))
			}
			var keys []service.Key
			for _, id := range ids {
				keys = append(keys, trackingKey(id))
			}
			e.apart(keys)
		}},
		{"principals", func(e *storeEnv[Tx]) {
			var keys []service.Key
			for _, p := range []string{
				"alice", "Alice", "ALICE", "alice ", "alice  ", " alice", "alice\t", "alice\n", "alice\u00a0", "alice\u200b", "alice\u0301",
				"alic\u0435",              // a Cyrillic letter
				"\uff41lice",              // a fullwidth letter
				"jos\u00e9", "jose\u0301", // composed and decomposed
				"stra\u00dfe", "strasse", "STRASSE", "i", "I", "\u0130", "\u0131", "\ufb01n", "fin", "\u03c3", "\u03c2", "\u03a3",
				"a%", "a_", "%", "_", "\\", "'", "\"", "''", "0", "null", "\U0001f600", "\U0001f601",
				strings.Repeat("p", 1023) + "a", strings.Repeat("p", 1023) + "b",
			} {
				keys = append(keys, service.Key{Principal: p, Action: "create-ticket", RequestID: "key"})
			}
			e.apart(keys)
		}},
		{"actions, and parts that could run together", func(e *storeEnv[Tx]) {
			e.apart([]service.Key{
				{Principal: "alice", Action: "create-ticket", RequestID: "key"},
				{Principal: "alice", Action: "create_ticket", RequestID: "key"},
				{Principal: "alice", Action: "Create-ticket", RequestID: "key"},
				{Principal: "alice", Action: "create-ticke", RequestID: "tkey"},
				{Principal: "alic", Action: "ecreate-ticket", RequestID: "key"},
				{Principal: "key", Action: "create-ticket", RequestID: "alice"},
				{Principal: "alice/create", Action: "ticket", RequestID: "key"},
				{Principal: "alice", Action: "create", RequestID: "ticket/key"},
				{Principal: "bob", Action: "create-ticket", RequestID: "key"},
			})
		}},
		// A store that cannot keep such a principal may refuse it, but takes it for no
		// other one.
		{"principals that are no text", func(e *storeEnv[Tx]) {
			var keys []service.Key
			for _, p := range []string{"a\x00b", "a\x00c", "a\x00", "a\xff", "a\xfe", "a\xed\xa0\x80", "a\ufffd", "a"} {
				k := service.Key{Principal: p, Action: "create-ticket", RequestID: "key"}
				existing, err := e.submit(e.ctx, e.store, k, fmt.Sprintf("%x", p))
				if existing != nil {
					e.Fatalf("%q has the record of %q", p, existing.Key.Principal)
				}
				if err == nil {
					keys = append(keys, k)
				} else if isAway(err) {
					e.Errorf("%q: %v, as if another try could help", p, err)
				}
			}
			if len(keys) == 0 || keys[len(keys)-1].Principal != "a" {
				e.Error("a plain principal is refused")
			}
			for _, k := range keys {
				e.mustBeFirst(k, fmt.Sprintf("%x", k.Principal))
			}
		}},
	}
}

// apart submits under each key, twice, and finds each as it was.
func (e *storeEnv[Tx]) apart(keys []service.Key) {
	e.Helper()
	row := func(i int) string { return fmt.Sprintf("row %d", i) }
	for i, k := range keys {
		e.mustNotBe(k)
		e.first(k, row(i))
	}
	for i, k := range keys {
		e.mustBeFirst(k, row(i))
		existing, err := e.submit(e.ctx, e.store, k, "repeat")
		if err != nil {
			e.Fatal(err)
		}
		e.equal("record of a repeat", e.find(k), existing)
	}
	e.equal("rows", len(keys), len(e.Rows(e.T)))
}
