package sqlite_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"sync"
)

// faulty is a driver.Connector whose statements fail when told to: the n-th from
// now, beginning and committing counted.
type faulty struct {
	driver.Connector
	faults *faults
}

var errFault = errors.New("a fault of the test")

type faults struct {
	mu  sync.Mutex
	n   int // statements until the fault; 0 is none
	hit bool
}

func (f *faults) failAt(n int) (stop func() bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.n, f.hit = n, false
	return func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.n = 0
		return f.hit
	}
}

func (f *faults) step() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.n == 0 {
		return nil
	}
	if f.n--; f.n == 0 {
		f.hit = true
		return errFault
	}
	return nil
}

func (c *faulty) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &faultyConn{conn, c.faults}, nil
}

type faultyConn struct {
	driver.Conn
	faults *faults
}

func (c *faultyConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	if err := c.faults.step(); err != nil {
		return nil, err
	}
	tx, err := c.Conn.(driver.ConnBeginTx).BeginTx(ctx, opts)
	if err != nil {
		return nil, err
	}
	return &faultyTx{tx, c.faults}, nil
}

func (c *faultyConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	s, err := c.Conn.(driver.ConnPrepareContext).PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	return &faultyStmt{s, c.faults}, nil
}

type faultyTx struct {
	driver.Tx
	faults *faults
}

func (t *faultyTx) Commit() error {
	if err := t.faults.step(); err != nil {
		return errors.Join(err, t.Tx.Rollback()) // as the driver does
	}
	return t.Tx.Commit()
}

type faultyStmt struct {
	driver.Stmt
	faults *faults
}

func (s *faultyStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	if err := s.faults.step(); err != nil {
		return nil, err
	}
	return s.Stmt.(driver.StmtExecContext).ExecContext(ctx, args)
}

func (s *faultyStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	if err := s.faults.step(); err != nil {
		return nil, err
	}
	return s.Stmt.(driver.StmtQueryContext).QueryContext(ctx, args)
}
