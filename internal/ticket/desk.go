package ticket

import (
	"context"

	"github.com/agentic-go/agentic/service"
)

// desk is the table of tickets in one kind of database, beside the records of
// package service.
type desk[Tx any] interface {
	store() service.Store[Tx]
	// add makes an open ticket of the key's principal in tx.
	add(ctx context.Context, tx Tx, k service.Key, subject string) (id int64, err error)

	find(ctx context.Context, owner string, id int64) (t row, found bool, err error)
	count(ctx context.Context) (tickets, requests int, err error)
	ping(ctx context.Context) error
	close() error
}

// reads is the half of a desk that knows no transaction.
type reads interface {
	find(ctx context.Context, owner string, id int64) (t row, found bool, err error)
	count(ctx context.Context) (tickets, requests int, err error)
	ping(ctx context.Context) error
}

// row is a ticket. Whose it is was asked for.
type row struct {
	requestID, subject, status string
}

// statusOpen is the state of a new ticket.
const statusOpen = "open"
