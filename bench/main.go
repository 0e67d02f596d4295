// Command bench compares the rate of verified actions on this project's PostgreSQL
// ledger with that of the same three calls made by a durable workflow of
// github.com/dbos-inc/dbos-transact-golang, on one PostgreSQL server, against one
// ticket service, in turns. See README.md.
//
// It is a module of its own, so that what it compares with stays out of the main one.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentic-go/agentic/bench/internal/database"
	"github.com/agentic-go/agentic/bench/internal/tickets"
)

func main() {
	tickets.Main()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := command(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// options are what the flags say.
type options struct {
	callers  []int
	rounds   int
	turn     time.Duration
	warm     time.Duration
	pool     int
	profiles string
	progress io.Writer
}

func command(ctx context.Context, args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	callers := flags.String("callers", "16,64", "numbers of concurrent callers")
	rounds := flags.Int("rounds", 5, "rounds; in each, every side has one turn")
	seconds := flags.Float64("seconds", 6, "length of a turn")
	pool := flags.Int("pool", 20, "connections of each side's pool, at most")
	profiles := flags.String("cpuprofile", "", "existing `folder` for a processor profile of each turn")
	asJSON := flags.Bool("json", false, "print one JSON object instead of tables")
	if err := flags.Parse(args); err != nil {
		return err
	}
	o := options{rounds: *rounds, turn: time.Duration(*seconds * float64(time.Second)), warm: time.Second, pool: *pool,
		profiles: *profiles, progress: os.Stderr}
	for s := range strings.SplitSeq(*callers, ",") {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			return fmt.Errorf("-callers %s: not numbers from 1", *callers)
		}
		o.callers = append(o.callers, n)
	}
	if flags.NArg() > 0 || o.rounds < 1 || o.turn <= 0 || o.pool < 4 {
		return errors.New("bench takes flags only, with at least one round, some time and a pool of 4")
	}
	r, err := run(ctx, o)
	if err != nil {
		return err
	}
	if *asJSON {
		e := json.NewEncoder(stdout)
		e.SetIndent("", "  ")
		return e.Encode(r)
	}
	return r.print(stdout)
}

func run(ctx context.Context, o options) (_ *report, err error) {
	server, err := database.Open()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	service, err := tickets.Start(0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, service.Stop()) }()
	conn, err := server.Connect(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	r := &report{Actions: map[string]int{}, Settings: map[string]string{"pool": strconv.Itoa(o.pool), "turn": o.turn.String()}}
	if err := r.describe(ctx, conn); err != nil {
		return nil, err
	}

	m := &meter{conn: conn, profiles: o.profiles}
	for _, callers := range o.callers {
		sides, err := open(ctx, server, service, o.pool, callers)
		if err != nil {
			return nil, err
		}
		res, err := r.measure(ctx, m, sides, callers, o)
		for _, s := range sides {
			s.close()
		}
		if err != nil {
			return nil, err
		}
		r.Results = append(r.Results, *res)
	}
	return r, r.settle(service)
}

// open makes the sides, each with a database of its own.
func open(ctx context.Context, server *database.Server, service *tickets.Service, pool, callers int) (sides []*side, err error) {
	defer func() {
		if err != nil {
			for _, s := range sides {
				s.close()
			}
		}
	}()
	for _, f := range []func(database string) (*side, error){
		func(string) (*side, error) { return newBare(service.Origin), nil },
		func(d string) (*side, error) { return newAgentic(ctx, "agentic", service, d, 1) },
		func(d string) (*side, error) { return newAgentic(ctx, "agentic, unfolded", service, d, callers) },
		func(d string) (*side, error) { return newDBOS(ctx, service.Origin, d) },
	} {
		d, err := server.NewDatabase(pool)
		if err != nil {
			return sides, err
		}
		s, err := f(d)
		if err != nil {
			return sides, err
		}
		sides = append(sides, s)
	}
	return sides, nil
}

// measure gives the sides their turns. Each round begins with another side.
func (r *report) measure(ctx context.Context, m *meter, sides []*side, callers int, o options) (*result, error) {
	slices := make([][]*slice, len(sides))
	done := make([]int, len(sides))
	for i, s := range sides {
		warm, err := turn(ctx, s, callers, o.warm, 0)
		if err != nil {
			return nil, err
		}
		done[i] = warm.actions
	}
	for round := range o.rounds {
		for k := range sides {
			i := (round + k) % len(sides)
			t, err := m.turn(ctx, sides[i], callers, o.turn)
			if err != nil {
				return nil, err
			}
			slices[i] = append(slices[i], t)
			done[i] += t.actions
			fmt.Fprintf(o.progress, "callers %d, round %d of %d: %-18s %6.0f actions/s\n", callers, round+1, o.rounds, sides[i].name, t.rate())
		}
	}
	res := &result{Callers: callers}
	by := map[string]sideSum{}
	for i, s := range sides {
		if s.saved != nil {
			n, err := s.saved(ctx)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", s.name, err)
			}
			if n != done[i] {
				return nil, fmt.Errorf("%s: %d actions were verified, and the database has %d", s.name, done[i], n)
			}
		}
		r.Actions[s.name] += done[i]
		by[s.name] = sum(s.name, slices[i])
		res.Sides = append(res.Sides, by[s.name])
	}
	for _, p := range [][2]string{{"agentic", "dbos"}, {"agentic, unfolded", "dbos"}, {"agentic", "bare"}, {"dbos", "bare"}} {
		res.Ratios = append(res.Ratios, compare(by[p[0]], by[p[1]]))
	}
	return res, nil
}

// settle checks that the service saw exactly what was claimed.
func (r *report) settle(service *tickets.Service) error {
	c, err := service.Counts()
	if err != nil {
		return err
	}
	actions := 0
	for _, n := range r.Actions {
		actions += n
	}
	if r.Posts = c.Posts; c.Posts != int64(actions) || c.Tickets != int64(actions) || c.Repeats != 0 {
		return fmt.Errorf("%d actions were verified, and the service counted %+v", actions, c)
	}
	return nil
}

// describe tells what was measured.
func (r *report) describe(ctx context.Context, conn *pgx.Conn) error {
	r.Versions = map[string]string{"go": runtime.Version(), "platform": fmt.Sprintf("%s/%s, %d processors", runtime.GOOS, runtime.GOARCH, runtime.NumCPU())}
	if b, ok := debug.ReadBuildInfo(); ok {
		for _, m := range b.Deps {
			switch m.Path {
			case "github.com/dbos-inc/dbos-transact-golang", "github.com/jackc/pgx/v5":
				r.Versions[m.Path] = m.Version
			}
		}
	}
	for _, name := range []string{"server_version", "fsync", "synchronous_commit", "full_page_writes", "wal_level", "wal_sync_method", "shared_buffers", "max_wal_size"} {
		var value string
		if err := conn.QueryRow(ctx, `SELECT current_setting($1)`, name).Scan(&value); err != nil {
			return err
		}
		r.Settings[name] = value
	}
	if r.Settings["fsync"] != "on" || r.Settings["synchronous_commit"] != "on" {
		return errors.New("the server is not durable: fsync and synchronous_commit have to be on")
	}
	return nil
}
