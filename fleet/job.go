package fleet

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"

	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/postgres"
)

// defaultSchema is the ledger's.
const defaultSchema = "agentic"

func schemaOf(name string) string {
	if name == "" {
		return defaultSchema
	}
	return name
}

// Queue is the name of the queue of a scope.
func Queue(s client.Scope) string {
	h := sha256.New()
	for _, part := range []string{s.Principal, s.Environment} {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(part)))
		_, _ = h.Write(n[:]) // a hash takes everything
		_, _ = h.Write([]byte(part))
	}
	return "agentic_" + hex.EncodeToString(h.Sum(nil)[:16])
}

// jobArgs say which request, in which state. A scope is bytes, base64 in the job.
type jobArgs struct {
	Principal   []byte `json:"principal"`
	Environment []byte `json:"environment"`
	RequestID   string `json:"request_id"`
	Entries     int64  `json:"entries"`
}

// Kind implements river.JobArgs.
func (jobArgs) Kind() string { return "agentic_reconcile" }

func (a *jobArgs) due() postgres.Due {
	scope := client.Scope{Principal: string(a.Principal), Environment: string(a.Environment)}
	return postgres.Due{Scope: scope, RequestID: a.RequestID, Entries: a.Entries}
}

// maxAttempts bounds the errors that River keeps with a job. One that is discarded
// after so many, over eight hours, is found again by Ledger.Sweep.
const maxAttempts = 100

// living are the states of a job that will still run. There is one living job for a
// state of a request, whoever asks for it.
var living = []rivertype.JobState{
	rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRetryable, rivertype.JobStateRunning, rivertype.JobStateScheduled,
}

// Enqueuer makes the jobs of a ledger, for postgres.LedgerConfig.Enqueue: each in the
// transaction of the write that makes it due. schema is that of River's tables
// (Migrate); "" is "agentic".
func Enqueuer(schema string) func(context.Context, pgx.Tx, []postgres.Due) error {
	inserter, err := river.NewClient(riverpgxv5.New(nil), &river.Config{Schema: schemaOf(schema), Logger: slog.New(slog.DiscardHandler)})
	return func(ctx context.Context, tx pgx.Tx, due []postgres.Due) error {
		if err != nil {
			return fmt.Errorf("fleet: %w", err)
		}
		var now time.Time // by the clock that the ledger and River go by, whatever this host's says
		if err := tx.QueryRow(ctx, `SELECT clock_timestamp()`).Scan(&now); err != nil {
			return fmt.Errorf("fleet: jobs cannot be made: %w", err)
		}
		jobs := make([]river.InsertManyParams, len(due))
		for i, d := range due {
			if !d.At.After(now) {
				d.At = time.Time{} // River waits for its scheduler with any other time
			}
			jobs[i] = river.InsertManyParams{
				Args: jobArgs{[]byte(d.Scope.Principal), []byte(d.Scope.Environment), d.RequestID, d.Entries},
				InsertOpts: &river.InsertOpts{
					Queue: Queue(d.Scope), ScheduledAt: d.At, MaxAttempts: maxAttempts,
					UniqueOpts: river.UniqueOpts{ByArgs: true, ByState: living},
				},
			}
		}
		if _, err := inserter.InsertManyTx(ctx, tx, jobs); err != nil {
			return fmt.Errorf("fleet: jobs cannot be made: %w", err)
		}
		return nil
	}
}

// worker does jobs.
type worker struct {
	river.WorkerDefaults[jobArgs]
	cfg  *Config
	stop context.Context // no job begins when it has ended
	work context.Context // of executions; it ends after the grace period
	free chan struct{}   // has Concurrency places
}

// The errors that River keeps are short classes.
var (
	errLedger = errors.New("the ledger cannot do its work")
	errPanic  = errors.New("the worker panicked")
)

// Work implements river.Worker. River's own time limit only tells when a job may be
// given to another worker; the execution ends by the limits of its plan.
func (w *worker) Work(ctx context.Context, job *river.Job[jobArgs]) (err error) {
	select {
	case w.free <- struct{}{}:
		defer func() { <-w.free }()
	case <-ctx.Done():
	case <-w.stop.Done():
	}
	if ctx.Err() != nil || w.stop.Err() != nil {
		return river.JobSnooze(0)
	}
	defer func() {
		if r := recover(); r != nil {
			w.cfg.Logger.Error("a worker panicked", "request_id", job.Args.RequestID, "stack", string(debug.Stack()))
			err = errPanic
		}
	}()
	d := job.Args.due()
	if Queue(d.Scope) != job.Queue {
		return river.JobCancel(errors.New("the job is in the queue of another scope"))
	}
	ctx = w.work
	stands, err := w.cfg.Ledger.Stands(ctx, d)
	if err != nil {
		return w.failed(ctx, d, err)
	}
	if !stands {
		return nil
	}
	done, err := w.cfg.Worker.One(ctx, d.Scope, d.RequestID)
	switch {
	case err != nil:
		return w.failed(ctx, d, err)
	case done.Later > 0:
		return river.JobSnooze(done.Later)
	}
	return nil
}

// failed tells River of a failure. A job that was cancelled waits for the next
// worker.
func (w *worker) failed(ctx context.Context, d postgres.Due, err error) error {
	if ctx.Err() != nil {
		return river.JobSnooze(0)
	}
	w.cfg.Logger.Error("a request could not be reconciled", "request_id", d.RequestID, "error", err)
	return errLedger
}

// Timeout implements river.Worker.
func (w *worker) Timeout(*river.Job[jobArgs]) time.Duration { return w.cfg.Rescue }

// NextRetry implements river.Worker: 2 s doubling to 5 min, moved by up to a fifth.
func (w *worker) NextRetry(job *river.Job[jobArgs]) time.Time {
	d := min(time.Second<<min(max(job.Attempt, 1), 9), 5*time.Minute)
	return time.Now().Add(d + time.Duration((rand.Float64()-0.5)*0.4*float64(d)))
}
