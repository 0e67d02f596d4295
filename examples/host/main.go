// Command host is the smallest agent host: it runs one action of a service and
// prints the receipt. Try it against the reference service:
//
//	go run ./cmd/agentic serve --fault response-lost
//	go run ./examples/host http://127.0.0.1:4318 '{"subject":"Printer on fire"}'
//
// Give the request ID of an earlier run as a third argument to ask again without
// a second write.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/sqlite"
	"github.com/agentic-go/agentic/transport"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: host ORIGIN INPUT [REQUEST-ID]")
		os.Exit(2)
	}
	id := ""
	if len(os.Args) > 3 {
		id = os.Args[3]
	}
	receipt, err := run(ctx, os.Args[1], []byte(os.Args[2]), id, "host-example.db")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Printf("%s\n", receipt.Encode())
}

// run is all that a host has to write. The caller has authorized the action.
func run(ctx context.Context, origin string, input []byte, id, ledgerPath string) (agentic.Receipt, error) {
	var none agentic.Receipt
	tr, err := transport.New(transport.Config{Origins: []string{origin}, AllowLoopback: true}) // a real service: no AllowLoopback
	if err != nil {
		return none, err
	}
	profile, err := tr.Fetch(ctx, origin+"/agentic.json", agentic.MaxProfileBytes, 5*time.Second)
	if err != nil {
		return none, err
	}
	openapi, err := tr.Fetch(ctx, origin+"/openapi.json", agentic.MaxOpenAPIBytes, 5*time.Second)
	if err != nil {
		return none, err
	}
	plan, err := agentic.Load(profile, openapi, "create-ticket", agentic.Options{AllowLoopback: true})
	if err != nil {
		return none, err
	}
	ledger, err := sqlite.Open(ctx, sqlite.Config{Path: ledgerPath})
	if err != nil {
		return none, err
	}
	defer ledger.Close()
	c, err := client.New(client.Config{
		Ledger: ledger, Transport: tr,
		Scope: client.Scope{Principal: "example", Environment: "local"},
	})
	if err != nil {
		return none, err
	}
	result, err := c.Execute(ctx, client.Request{Plan: plan, Input: input, ID: id})
	return result.Receipt, err
}
