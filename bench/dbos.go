package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/dbos-inc/dbos-transact-golang/dbos"
)

// order is the input of the workflow.
type order struct {
	RequestID string `json:"request_id"`
	Subject   string `json:"subject"`
}

// newDBOS is the same three calls as a durable workflow: one workflow for each
// action, whose workflow ID is the request ID, and one step for each call, as its
// documentation asks of what is not deterministic. The workflow is started in this
// process and its result comes back over a channel: no queue, and nothing polls
// for it. The pool is the library's own, with its own settings.
func newDBOS(ctx context.Context, origin, database string) (*side, error) {
	d, err := dbos.NewContext(ctx, dbos.Config{
		AppName:     "agentic-bench",
		DatabaseURL: database,
		Logger:      slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
	})
	if err != nil {
		return nil, err
	}
	c := newCaller(origin)
	w := &workflow{calls: c}
	dbos.RegisterWorkflow(d, w.run, dbos.WithWorkflowName("create-ticket"))
	if err := dbos.Launch(d); err != nil {
		return nil, err
	}
	end := func() {
		if err := dbos.Shutdown(d, 10*time.Second); err != nil {
			fmt.Fprintln(os.Stderr, "bench: dbos:", err)
		}
		c.http.CloseIdleConnections()
	}
	saved := func(context.Context) (int, error) {
		list, err := dbos.ListWorkflows(d, dbos.WithFilterStatus(dbos.WorkflowStatusSuccess), dbos.WithFilterLoadInput(false), dbos.WithFilterLoadOutput(false))
		return len(list), err
	}
	return &side{name: "dbos", close: end, saved: saved, act: func(_ context.Context, _ int) error {
		o := order{RequestID: newRequestID(), Subject: subject()}
		h, err := dbos.RunWorkflow(d, w.run, o, dbos.WithWorkflowID(o.RequestID))
		if err != nil {
			return err
		}
		e, err := h.GetResult()
		if err == nil && (e.RequestID != o.RequestID || e.ResourceID == "") {
			err = fmt.Errorf("request %s: the evidence is %+v", o.RequestID, e)
		}
		return err
	}}, nil
}

type workflow struct{ calls *caller }

func (w *workflow) run(d dbos.Context, o order) (evidence, error) {
	_, err := dbos.RunAsStep(d, func(ctx context.Context) (int, error) {
		return w.calls.submit(ctx, o.RequestID, o.Subject)
	}, dbos.WithStepName("submit"))
	if err != nil {
		return evidence{}, err
	}
	resource, err := dbos.RunAsStep(d, func(ctx context.Context) (string, error) {
		return w.calls.status(ctx, o.RequestID)
	}, dbos.WithStepName("status"))
	if err != nil {
		return evidence{}, err
	}
	return dbos.RunAsStep(d, func(ctx context.Context) (evidence, error) {
		return w.calls.verify(ctx, o.RequestID, resource, o.Subject)
	}, dbos.WithStepName("verify"))
}
