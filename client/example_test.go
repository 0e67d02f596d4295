package client_test

import (
	"context"
	"fmt"
	"os"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/ledgertest"
)

// A host loads the publisher's documents, makes one Client, and executes. Here
// the ledger is in memory and the service is scripted; a real host takes
// sqlite.Open and transport.New.
func Example() {
	profile, _ := os.ReadFile("../testdata/profile.json")
	openapi, _ := os.ReadFile("../testdata/openapi.json")
	plan, err := agentic.Load(profile, openapi, "create-ticket", agentic.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	c, err := client.New(client.Config{
		Ledger:    ledgertest.NewMemory(nil),
		Transport: good(),
		Scope:     client.Scope{Principal: "ann", Environment: "live"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	req := client.Request{Plan: plan, Input: []byte(`{"subject":"Printer on fire"}`), ID: "request-0001"}
	result, err := c.Execute(context.Background(), req)
	fmt.Println(result.Receipt.Outcome, result.Sent, err)

	// The same ID again: the saved receipt, and no second write.
	result, err = c.Execute(context.Background(), req)
	fmt.Println(result.Receipt.Outcome, result.Sent, err)
	// Output:
	// succeeded true <nil>
	// succeeded false <nil>
}
