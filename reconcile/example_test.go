package reconcile_test

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/ledgertest"
	"github.com/agentic-go/agentic/reconcile"
)

// ticketService knows every request, and has done it.
type ticketService struct{}

func (ticketService) Approve(string, string) error { return nil }

func (ticketService) Submit(context.Context, client.Submission) client.Exchange {
	return broken(client.ClassBroken) // the host never learns what became of it
}

func (ticketService) Get(_ context.Context, r client.Read) client.Exchange {
	id := r.URL[strings.LastIndex(r.URL, "/")+1:]
	if id, ok := strings.CutPrefix(id, "t-"); ok {
		return answer(200, fmt.Sprintf(`{"id":"t-%s","request_id":%q,"subject":"Printer on fire","status":"open"}`, id, id))
	}
	return succeeded(id)
}

// A host was killed between its submission and the receipt. A worker, here in
// another process of the same ledger, finds out what became of it.
func Example() {
	profile, _ := os.ReadFile("../testdata/profile.json")
	openapi, _ := os.ReadFile("../testdata/openapi.json")
	plan, err := agentic.Load(profile, openapi, "create-ticket", agentic.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	ledger := ledgertest.NewMemory(nil) // a real host takes sqlite.Open or postgres.OpenLedger
	scope := client.Scope{Principal: "ann", Environment: "live"}
	host, err := client.New(client.Config{Ledger: ledger, Transport: ticketService{}, Scope: scope,
		KillPoint: func(p client.Point) {
			if p == client.AfterSubmit {
				panic("killed")
			}
		}})
	if err != nil {
		fmt.Println(err)
		return
	}
	func() {
		defer func() { fmt.Println("the host is", recover()) }()
		_, _ = host.Execute(context.Background(), client.Request{Plan: plan, Input: []byte(`{"subject":"Printer on fire"}`), ID: "request-0001"})
	}()

	c, err := client.New(client.Config{Ledger: ledger, Transport: ticketService{}})
	if err != nil {
		fmt.Println(err)
		return
	}
	worker, err := reconcile.New(reconcile.Config{Client: c, Ledger: ledger, Scopes: []client.Scope{scope}})
	if err != nil {
		fmt.Println(err)
		return
	}
	report, err := worker.Pass(context.Background(), reconcile.PassOptions{}, nil) // or worker.Run(ctx), until ctx ends
	for _, d := range report.Done {
		fmt.Println(d.RequestID, d.Kind, d.After, err)
	}
	// Output:
	// the host is killed
	// request-0001 verified succeeded <nil>
}
