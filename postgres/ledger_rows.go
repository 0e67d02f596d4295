package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/internal/lease"
	"github.com/agentic-go/agentic/internal/savedform"
)

// damage is a row that cannot be right.
type damage struct{ error }

func (d *damage) Error() string { return "the ledger is damaged: " + d.error.Error() }
func (d *damage) Unwrap() error { return d.error }

func damaged(requestID string, err error) error {
	return &damage{fmt.Errorf("request %.140s: %w", requestID, err)}
}

// row is a request with what the ledger alone has to know of it.
type row struct {
	id      int64
	fence   int64
	holder  int64
	held    bool // by holder
	entries int64
	notes   int64
	record  client.Record

	read   time.Time // by the database's clock
	moment lease.Moment
}

func (r *row) over() bool { return r.record.Over() != nil }

// summaryScan reads summaryColumns.
type summaryScan struct {
	client.Summary
	principal, environment                             []byte
	created, seen, attempted, windowEnds, next, purged *time.Time
}

func (s *summaryScan) into() []any {
	return []any{&s.principal, &s.environment, &s.RequestID, &s.Origin, &s.ActionID, &s.Outcome, &s.Settled, &s.Supersedes,
		&s.created, &s.seen, &s.attempted, &s.windowEnds, &s.next, &s.purged}
}

// summary checks what was scanned.
func (s *summaryScan) summary() (*client.Summary, error) {
	sum := &s.Summary
	sum.Scope = client.Scope{Principal: string(s.principal), Environment: string(s.environment)}
	sum.CreatedAt, sum.SeenAt, sum.AttemptedAt = utc(s.created), utc(s.seen), utc(s.attempted)
	sum.WindowEnds, sum.NextCheck, sum.PurgedAt = utc(s.windowEnds), utc(s.next), utc(s.purged)
	sum.State = client.Prepared
	if s.attempted != nil {
		sum.State = client.Attempted
	}
	if sum.Outcome != "" && !sum.Outcome.Valid() {
		return nil, damaged(sum.RequestID, fmt.Errorf("the outcome is %.140s", sum.Outcome))
	}
	if sum.Settled != "" && !sum.Settled.Settles() {
		return nil, damaged(sum.RequestID, fmt.Errorf("it was settled with %.140s", sum.Settled))
	}
	return sum, nil
}

func utc(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}

func fromMicros(n int64) time.Duration { return time.Duration(n) * time.Microsecond }

// read gives a request, or nil when there is none, in one statement and so at one
// moment. A row that cannot be right is an error.
func (l *Ledger) read(ctx context.Context, scope client.Scope, requestID string) (r *row, err error) {
	err = l.ofOne(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		r, err = l.readOn(ctx, conn, scope, requestID)
		return err
	})
	return r, err
}

func (l *Ledger) readOn(ctx context.Context, conn *pgx.Conn, scope client.Scope, requestID string) (*row, error) {
	var s summaryScan
	var r row
	var window, term int64
	var sums [3][]byte
	var seqs, noteSeqs []int64
	var observations, receipts, notes []string
	rec := &r.record
	key := keyOfRequest(scope, requestID)
	sent := time.Now()
	err := conn.QueryRow(ctx, l.sql.load, key[:]).Scan(append(s.into(), &r.id, &window, &term, &r.fence, &r.holder, &r.held, &r.read, &r.entries, &r.notes,
		&rec.Profile.Digest, &rec.OpenAPI.Digest, &rec.InputDigest, &rec.Input, &rec.Profile.Body, &rec.OpenAPI.Body,
		&sums[0], &sums[1], &sums[2], &seqs, &observations, &receipts, &noteSeqs, &notes)...)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	r.moment = lease.Moment{Sent: sent, Answered: time.Now()}
	sum, err := s.summary()
	if err != nil {
		return nil, err
	}
	rec.Scope, rec.RequestID, rec.Origin, rec.ActionID, rec.Supersedes = scope, requestID, sum.Origin, sum.ActionID, sum.Supersedes
	rec.Window, rec.Term = fromMicros(window), fromMicros(term)
	rec.State, rec.CreatedAt, rec.SeenAt, rec.AttemptedAt, rec.PurgedAt = sum.State, sum.CreatedAt, sum.SeenAt, sum.AttemptedAt, sum.PurgedAt
	if sum.Scope != scope || sum.RequestID != requestID {
		return nil, damaged(requestID, errors.New("it stands under the key of another"))
	}
	if err := savedform.CheckRequest(rec, sums); err != nil {
		return nil, damaged(requestID, err)
	}
	if err := inOrder("entries", seqs, r.entries); err != nil {
		return nil, damaged(requestID, err)
	}
	for i := range seqs {
		if err := savedform.AppendEntry(rec, observations[i], receipts[i]); err != nil {
			return nil, damaged(requestID, err)
		}
	}
	if err := inOrder("notes", noteSeqs, r.notes); err != nil {
		return nil, damaged(requestID, err)
	}
	for _, note := range notes {
		one, err := savedform.Decode[client.Note](note)
		if err != nil || len(one) != 1 {
			return nil, damaged(requestID, fmt.Errorf("a note: %w", err))
		}
		rec.Notes = append(rec.Notes, one...)
	}
	if err := savedform.CheckOutcome(rec, string(sum.Outcome)); err != nil {
		return nil, damaged(requestID, err)
	}
	if !rec.PurgedAt.IsZero() {
		rec.Purged, rec.PurgedSettled = sum.Outcome, sum.Settled
	} else if n := rec.Settled(); n == nil && sum.Settled != "" || n != nil && n.Verb != sum.Settled {
		return nil, damaged(requestID, errors.New("what settled it is not the last note that does"))
	}
	return &r, nil
}

// inOrder checks that a request has its entries or notes, and no others.
func inOrder(what string, seqs []int64, n int64) error {
	if int64(len(seqs)) != n {
		return fmt.Errorf("%d %s instead of %d", len(seqs), what, n)
	}
	for i, seq := range seqs {
		if seq != int64(i+1) {
			return fmt.Errorf("of its %s number %d stands where number %d belongs", what, seq, i+1)
		}
	}
	return nil
}

// Load implements client.Ledger.
func (l *Ledger) Load(ctx context.Context, scope client.Scope, requestID string) (*client.Record, error) {
	if err := l.usable(ctx); err != nil {
		return nil, ledgerError("load", err)
	}
	r, err := l.read(ctx, scope, requestID)
	switch {
	case err != nil:
		return nil, ledgerError("load", err)
	case r == nil:
		return nil, &client.NotFoundError{Scope: scope, RequestID: requestID}
	}
	return &r.record, nil
}
