// Command before is the shop before it conformed: a repeated order is a second one.
//
// It takes the orders of a small shop over net/http, in tables of its own, on SQLite
// or PostgreSQL. SHOP_CUSTOMERS has the customers and their tokens, such as
// "ann=secret,bob=hidden".
package main

import (
	"context"
	"crypto/sha256"
	"database/sql"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"
)

//go:embed openapi.json
var openapi []byte

type config struct {
	file      string // of SQLite
	postgres  string // URL; "" is SQLite
	customers string // name=token, separated by commas
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var c config
	addr := flag.String("addr", "127.0.0.1:8080", "listen on this `address`, behind a proxy for TLS")
	flag.StringVar(&c.file, "db", "shop.db", "SQLite `file`")
	flag.StringVar(&c.postgres, "postgres", "", "`URL` of a PostgreSQL database, in place of SQLite")
	flag.Parse()
	c.customers = os.Getenv("SHOP_CUSTOMERS")
	ln, err := net.Listen("tcp", *addr)
	if err == nil {
		slog.Info("listening", "addr", ln.Addr())
		err = run(ctx, c, ln)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run serves the shop until ctx ends.
func run(ctx context.Context, c config, ln net.Listener) error {
	defer ln.Close()
	db, err := c.open()
	if err != nil {
		return err
	}
	defer db.Close()
	if err := migrate(ctx, db); err != nil {
		return err
	}
	s := &shop{db: db, customers: parseCustomers(c.customers)}
	mux := http.NewServeMux()
	mux.Handle("POST /orders", s.endpoint(http.StatusCreated, s.place))
	mux.Handle("GET /orders/{id}", s.endpoint(http.StatusOK, s.read))
	mux.HandleFunc("GET /openapi.json", func(w http.ResponseWriter, _ *http.Request) { write(w, http.StatusOK, openapi) })

	srv := &http.Server{Handler: mux, ReadTimeout: 10 * time.Second, WriteTimeout: time.Minute, IdleTimeout: time.Minute}
	done := make(chan error, 1)
	go func() {
		<-ctx.Done()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		done <- srv.Shutdown(ctx)
	}()
	if err := srv.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-done
}

func (c config) open() (*sql.DB, error) {
	if c.postgres != "" {
		return sql.Open("pgx", c.postgres)
	}
	return sql.Open("sqlite", "file:"+c.file+"?_busy_timeout=5000&_journal_mode=WAL&_synchronous=FULL&_txlock=immediate")
}

// parseCustomers keeps digests of the tokens only.
func parseCustomers(list string) map[[sha256.Size]byte]string {
	known := map[[sha256.Size]byte]string{}
	for pair := range strings.SplitSeq(list, ",") {
		if name, token, _ := strings.Cut(pair, "="); name != "" && token != "" {
			known[sha256.Sum256([]byte(token))] = name
		}
	}
	return known
}
