package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"math"
	"net/http"
	"strings"

	"github.com/agentic-go/agentic/service"
)

// shop takes orders.
type shop struct {
	db        *sql.DB
	customers map[[sha256.Size]byte]string // by the digest of the token
}

// order is an order as its customer sees it.
type order struct {
	ID         string `json:"id"`
	Customer   string `json:"-"`
	SKU        string `json:"sku"`
	Quantity   int    `json:"quantity"`
	PriceCents int    `json:"price_cents"`
	Status     string `json:"status"` // placed or sent
	RequestID  string `json:"request_id,omitempty"`
}

// columns are those of an order, in the order of its fields.
const columns, places = `id, customer, sku, quantity, price_cents, status, request_id`, `$1, $2, $3, $4, $5, $6, $7`

func (o *order) fields() []any {
	return []any{&o.ID, &o.Customer, &o.SKU, &o.Quantity, &o.PriceCents, &o.Status, &o.RequestID}
}

// problem is an error that the customer may read, as RFC 9457 has it.
type problem struct {
	Title  string `json:"title"`
	Status int    `json:"status"`
}

func (p *problem) Error() string { return p.Title }

// changes are the versions of the database. What was released is never edited.
var changes = []string{
	`CREATE TABLE item (sku TEXT PRIMARY KEY, price_cents INTEGER NOT NULL, stock INTEGER NOT NULL)`,
	`CREATE TABLE orders (id TEXT PRIMARY KEY, customer TEXT NOT NULL, sku TEXT NOT NULL REFERENCES item,
		quantity INTEGER NOT NULL, price_cents INTEGER NOT NULL, status TEXT NOT NULL)`,
	`INSERT INTO item VALUES ('lamp', 4900, 100), ('chair', 12900, 3)`,
	`ALTER TABLE orders ADD COLUMN request_id TEXT NOT NULL DEFAULT ''`,
}

// place is POST /orders.
func (s *shop) place(ctx context.Context, tx *sql.Tx, r service.Request) (service.Result, error) {
	o, err := insert(ctx, tx, order{Customer: r.Key.Principal, RequestID: r.Key.RequestID}, r.Input)
	if no, ok := errors.AsType[*problem](err); ok {
		return service.RefusedWith(no.Status, encode(no)), nil
	}
	return service.DoneWith(o.ID, encode(o)), err
}

// insert takes what is ordered out of the stock. Its problems are definite.
func insert(ctx context.Context, tx *sql.Tx, o order, body []byte) (order, error) {
	var in struct {
		SKU      string
		Quantity float64 // 2.0 is the integer 2, which json refuses for an int
	}
	if err := json.Unmarshal(body, &in); err != nil || in.Quantity != math.Trunc(in.Quantity) || in.Quantity < 1 || in.Quantity > 1000 {
		return o, &problem{"An order has a sku and a quantity from 1 to 1000", http.StatusUnprocessableEntity}
	}
	o.ID, o.SKU, o.Quantity, o.Status = rand.Text(), in.SKU, int(in.Quantity), "placed"
	err := tx.QueryRowContext(ctx, `UPDATE item SET stock = stock - $1 WHERE sku = $2 AND stock >= $1 RETURNING price_cents`, o.Quantity, o.SKU).Scan(&o.PriceCents)
	if errors.Is(err, sql.ErrNoRows) {
		return o, &problem{"Out of stock", http.StatusUnprocessableEntity}
	}
	if err != nil {
		return o, err
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO orders (`+columns+`) VALUES (`+places+`)`, o.fields()...)
	return o, err
}

// read is GET /orders/{id}. An order of somebody else is not there.
func (s *shop) read(r *http.Request, customer string, _ []byte) (o order, err error) {
	err = s.db.QueryRowContext(r.Context(), `SELECT `+columns+` FROM orders WHERE id = $1 AND customer = $2`,
		r.PathValue("id"), customer).Scan(o.fields()...)
	if errors.Is(err, sql.ErrNoRows) {
		return o, &problem{"No such order", http.StatusNotFound}
	}
	return o, err
}

// customer authenticates a request.
func (s *shop) customer(r *http.Request) (string, error) {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if name, ok := s.customers[sha256.Sum256([]byte(token))]; ok {
		return name, nil
	}
	return "", &problem{"A token is needed", http.StatusUnauthorized}
}

// endpoint is what all endpoints of the shop share.
func (s *shop) endpoint(status int, f func(r *http.Request, customer string, body []byte) (order, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		customer, err := s.customer(r)
		if err != nil {
			fail(w, err)
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 16<<10))
		if err != nil {
			fail(w, &problem{"The body cannot be read", http.StatusBadRequest})
			return
		}
		o, err := f(r, customer, body)
		if err != nil {
			fail(w, err)
			return
		}
		write(w, status, encode(o))
	})
}

func fail(w http.ResponseWriter, err error) {
	p, ok := errors.AsType[*problem](err)
	if !ok {
		slog.Error("failed", "error", err)
		p = &problem{"Internal error", http.StatusInternalServerError}
	}
	if p.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	write(w, p.Status, encode(p))
}

func write(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	if status >= 400 {
		w.Header().Set("Content-Type", "application/problem+json")
	}
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(body) // who has gone needs no answer
}

// encode is for values of this program, which always marshal.
func encode(v any) []byte {
	b, _ := json.Marshal(v)
	return append(b, '\n')
}

// migrate brings the database to the newest version. Hosts that do it at once wait
// for each other.
func migrate(ctx context.Context, db *sql.DB) error {
	if _, err := db.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS shop_version (id INTEGER PRIMARY KEY, n INTEGER NOT NULL)`); err != nil {
		return err
	}
	_, err := transact(ctx, db, func(ctx context.Context, tx *sql.Tx) (n int, err error) {
		err = tx.QueryRowContext(ctx, `INSERT INTO shop_version VALUES (1, 0) ON CONFLICT (id) DO UPDATE SET id = 1 RETURNING n`).Scan(&n)
		if err != nil {
			return n, err
		}
		if n > len(changes) {
			return n, errors.New("the database is of a newer version of this program")
		}
		for _, change := range changes[n:] {
			if _, err := tx.ExecContext(ctx, change); err != nil {
				return n, err
			}
		}
		_, err = tx.ExecContext(ctx, `UPDATE shop_version SET n = $1`, len(changes))
		return n, err
	})
	return err
}

// transact commits what f did when f returns no error.
func transact[T any](ctx context.Context, db *sql.DB, f func(context.Context, *sql.Tx) (T, error)) (v T, err error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return v, err
	}
	defer tx.Rollback()
	if v, err = f(ctx, tx); err != nil {
		return v, err
	}
	return v, tx.Commit()
}
