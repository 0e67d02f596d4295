// Package clientkit checks a client of the Agentic Action Profile 0.1 as a process, over
// the interface of the draft's compatibility runner.
//
// Its job: each check starts a service on a fresh loopback port and the client with a
// fresh ledger place, breaks what the check breaks, and compares what the client says
// with what the service saw. The service side is the judge: POSTs, their order, headers
// and bytes are counted as they arrived, and a receipt is believed only when the answers
// that were served let a client come to it.
//
// Not its job: certifying anything (package conformance reports observations), writing
// reports, or the client's own tests. Nothing but loopback is listened on, and the
// only processes started are the adapter's.
//
// It imports the root package, conformance, internal/ticket, internal/strictjson, and its
// own story and excerpt.
//
// # How a check is written
//
// A check is a scenario: its Info and a function over a trial, listed in catalog.go.
//
//	{Info: must("stale-read", "Draft", "…", "6.5", "The draft asks …"),
//		run: func(ctx context.Context, t *trial) error {
//			if err := t.ticket(ctx, "stale-read"); err != nil { // the service, its documents and an input
//				return err
//			}
//			rep, err := t.call(ctx, t.ask())        // one call of the client
//			if err != nil {
//				return err                      // the kit could not go on
//			}
//			t.finished(rep, agentic.Succeeded)      // the standard expectations
//			t.tickets(ctx, 1)
//			return nil
//		}},
//
// What answers is one of three, or a mix: trial.ticket (internal/ticket with a fault),
// trial.custom (own documents; all requests get 404 until they are scripted), and over
// either trial.script, which answers single operations itself. A scripted operation gets
// the number of its arrival, from 1, and may write, flush, wait or hijack as any handler
// does; return false and what is below answers. Of what is written to a hijacked
// connection the beginning is taken down for the report; no receipt can rest on it.
//
// judge.hold keeps the first arrival of an operation back at a stage; ask.kill has the
// client killed there. trial.stranger is a second origin that nobody may talk to.
//
// The standard expectations are in expect.go: finished is printed (one valid receipt,
// exit 0), means (IDs, outcome, and that the judge knows it to be true), sent (the POST
// and nothing else) and bounded (reads). They ask only what is a MUST of the draft; what
// is this project's reading is a check of its own, of level reading.
package clientkit
