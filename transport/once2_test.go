package transport

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/wiretest"
)

// submitTo submits to a server of wiretest, after a read that leaves an idle
// connection behind when the stage is on a reused one. It keeps the Exchange.
func submitTo(kept *client.Exchange) wiretest.SubmitFunc {
	var tr *Transport
	return func(ctx context.Context, target wiretest.Target) error {
		origin := strings.TrimSuffix(target.URL, "/tickets")
		if tr == nil {
			var err error
			if tr, err = New(Config{Origins: []string{origin}, AllowLoopback: true, RootCAs: target.RootCAs}); err != nil {
				return err
			}
		}
		if target.WarmUp {
			return tr.Get(ctx, read(origin, "/requests/1")).Err
		}
		defer tr.CloseIdleConnections()
		s := submission(origin)
		s.RequestID, s.Body, s.Timeout = target.Key, target.Body, wiretest.MaxTime
		*kept = tr.Submit(ctx, s)
		return kept.Err
	}
}

// TestOnce breaks off at every stage of wiretest: at most one POST, over a
// connection of its own, and an Exchange that claims nothing.
func TestOnce(t *testing.T) {
	var wg sync.WaitGroup
	free := make(chan struct{}, 32)
	for _, stage := range wiretest.Stages() {
		free <- struct{}{}
		wg.Go(func() {
			defer func() { <-free }()
			var e client.Exchange
			r, err := wiretest.Try(t.Context(), stage, submitTo(&e))
			if err == nil {
				err = r.Check()
			}
			if err != nil {
				t.Errorf("%v", err)
				return
			}
			for _, p := range r.Posts {
				if p.Reused {
					t.Errorf("%s: the POST came over a connection that was used", stage.Name)
				}
			}
			want := 1
			if stage.Reused {
				want = 2 // that of the read
			}
			if !r.Struck || r.Connections != want || r.Protocol != stage.Protocol {
				t.Errorf("%s: struck %v, %d connections, %s", stage.Name, r.Struck, r.Connections, r.Protocol)
			}
			if problem := misjudged(r, e); problem != "" {
				t.Errorf("%s: %s: %+v", stage.Name, problem, e)
			}
		})
	}
	wg.Wait()
}

// misjudged says what is wrong with the Exchange of a stage. A connection that
// ends while it opens may do so in the handshake, with nothing sent.
func misjudged(r wiretest.Result, e client.Exchange) string {
	parts := strings.Split(r.Stage.Name, "/")
	fault := parts[len(parts)-1]
	switch {
	case e.Reach == client.MaybeSent && e.Class == client.ClassCanceled:
		// The stage ended it, at the latest on a busy machine.
	case e.Reach == client.NotSent && (len(r.Posts) > 0 || !strings.HasPrefix(fault, "open-")):
		return "not-sent, and it was"
	case (e.Class == "") != (e.Err == nil) || e.Class != "" && e.Answer.Body != nil:
		return "half an answer"
	case fault == "answered" || fault == "answer-close":
		if e.Reach != client.Answered || e.Class != "" || e.Answer.Status != 200 {
			return "answered in full, and not taken"
		}
	case strings.HasPrefix(fault, "answer-30"):
		if e.Class != client.ClassRedirect {
			return "a redirect"
		}
	case strings.HasPrefix(fault, "open-"), strings.HasPrefix(fault, "answer-"), strings.HasSuffix(fault, "408"):
		// Whether the answer or the end was first, or how much of it came, varies.
	case e.Reach != client.MaybeSent:
		return "no answer came"
	case strings.HasSuffix(fault, "silence"):
		return "silence, and another end"
	case fault == "whole-bad-frame":
		if e.Class != client.ClassProtocol && e.Class != client.ClassBroken {
			return "not HTTP/2"
		}
	case e.Class != client.ClassBroken && e.Class != client.ClassTLS:
		return "a broken connection"
	}
	return ""
}
