// Package database gives a program the PostgreSQL server that the main module's
// tests use: a throw-away one with fsync and synchronous_commit on, or the one that
// AGENTIC_TEST_POSTGRES names; and databases in it, with the settings of a pool.
//
// It imports internal/pgtest, which it gives a test to blame that is no test.
package database

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/agentic-go/agentic/internal/pgtest"
)

// Server is a PostgreSQL server. It ends with the program, even one that is killed.
type Server struct {
	cluster *pgtest.Cluster
	blame   *blame
}

// Open starts the server, or finds the one that is named.
func Open() (s *Server, err error) {
	defer rescue(&err)
	b := &blame{}
	return &Server{cluster: pgtest.Shared(b), blame: b}, nil
}

// NewDatabase makes an empty database and gives its URL, in which pool_max_conns
// says how many connections a pool makes at most.
func (s *Server) NewDatabase(conns int) (address string, err error) {
	defer rescue(&err)
	u, err := url.Parse(s.cluster.NewDatabase(s.blame))
	if err != nil {
		return "", err
	}
	q := u.Query()
	q.Set("pool_max_conns", strconv.Itoa(conns))
	u.RawQuery = q.Encode()
	return u.String(), nil
}

// Connect is a connection of its own to the server, to watch it.
func (s *Server) Connect(ctx context.Context) (*pgx.Conn, error) {
	return pgx.Connect(ctx, s.cluster.URL("postgres"))
}

// Close drops the databases.
func (s *Server) Close() (err error) {
	defer rescue(&err)
	for _, f := range slices.Backward(s.blame.cleanups) {
		f()
	}
	s.blame.cleanups = nil
	return nil
}

// blame is the testing.TB of a program: a failure ends the call that blames it. The
// interface is embedded because it cannot be implemented, and pgtest uses no more
// of it than this.
type blame struct {
	testing.TB
	cleanups []func()
}

// failure is what a blame panics with and rescue returns as an error.
type failure struct{ error }

func (b *blame) Helper()                      {}
func (b *blame) Cleanup(f func())             { b.cleanups = append(b.cleanups, f) }
func (b *blame) Fatal(args ...any)            { panic(failure{errors.New(fmt.Sprint(args...))}) }
func (b *blame) Fatalf(f string, args ...any) { panic(failure{fmt.Errorf(f, args...)}) }

func rescue(err *error) {
	switch r := recover().(type) {
	case nil:
	case failure:
		*err = r.error
	default:
		panic(r)
	}
}
