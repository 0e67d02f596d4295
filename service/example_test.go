package service_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/agentic-go/agentic/service"
	"github.com/agentic-go/agentic/sqlite"
)

// shop is a publisher with a table of its own.
type shop struct{ db *sql.DB }

// order is the handler: it writes the publisher's row in the tracker's
// transaction, and says what came of it.
func (s *shop) order(ctx context.Context, tx *sql.Tx, r service.Request) (service.Result, error) {
	var in struct{ Subject string }
	if err := json.Unmarshal(r.Input, &in); err != nil || in.Subject == "" {
		return service.RefusedWith(http.StatusUnprocessableEntity, nil), nil
	}
	res, err := tx.ExecContext(ctx, `INSERT INTO ticket (owner, request_id, subject) VALUES (?, ?, ?)`, r.Key.Principal, r.Key.RequestID, in.Subject)
	if err != nil {
		return service.Result{}, err
	}
	id, err := res.LastInsertId()
	if err != nil {
		return service.Result{}, err
	}
	return service.DoneWith(fmt.Sprint(id), nil), nil
}

// read is the publisher's own endpoint, the verify operation. What is not the
// caller's is not there.
func (s *shop) read(w http.ResponseWriter, r *http.Request) {
	who, err := session(r)
	if err != nil {
		http.Error(w, "unauthorized", http.StatusUnauthorized)
		return
	}
	t := map[string]string{"id": r.PathValue("id"), "status": "open"}
	var requestID, subject string
	err = s.db.QueryRowContext(r.Context(), `SELECT request_id, subject FROM ticket WHERE id = ? AND owner = ?`, t["id"], who).Scan(&requestID, &subject)
	if err != nil {
		http.NotFound(w, r)
		return
	}
	t["request_id"], t["subject"] = requestID, subject
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(t)
}

// session stands for the publisher's authentication.
func session(r *http.Request) (string, error) {
	if token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok && token != "" {
		return token, nil
	}
	return "", &service.AuthError{Challenge: `Bearer realm="tickets"`}
}

// A publisher on SQLite: the row of a ticket and the record of its request commit
// in one *sql.Tx.
func Example() {
	dir, err := os.MkdirTemp("", "publisher")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	dsn, err := sqlite.DSN(filepath.Join(dir, "shop.db"))
	if err != nil {
		log.Fatal(err)
	}
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(`CREATE TABLE ticket (id INTEGER PRIMARY KEY, owner TEXT, request_id TEXT, subject TEXT)`); err != nil {
		log.Fatal(err)
	}
	if err := sqlite.Migrate(ctx, db); err != nil {
		log.Fatal(err)
	}
	store, err := sqlite.OpenStore(ctx, sqlite.StoreConfig{DB: db})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	s := &shop{db}
	profile, openapi := documents("ticket") // of files, in a program
	tracker, err := service.New(service.Config[*sql.Tx]{Store: store, Principal: session, Profile: profile, OpenAPI: openapi},
		service.Action[*sql.Tx]{ID: "ticket", Handle: s.order})
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /ticket/{id}", service.NoStore(http.HandlerFunc(s.read)))
	if err := tracker.Register(mux); err != nil {
		log.Fatal(err)
	}
	go tracker.Run(ctx, time.Minute)

	call := func(method, path, body string) {
		r := httptest.NewRequest(method, path, strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer ann")
		r.Header.Set("Idempotency-Key", "key-1")
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		fmt.Print(w.Code, " ", w.Body)
	}
	call("POST", "/ticket", `{"subject":"printer"}`)
	call("POST", "/ticket", `{ "subject": "printer" }`)
	call("GET", "/ticket-requests/key-1", "")
	call("GET", "/ticket/1", "")
	// Output:
	// 201 {"request_id":"key-1","status":"succeeded","resource_id":"1"}
	// 200 {"request_id":"key-1","status":"succeeded","resource_id":"1"}
	// 200 {"request_id":"key-1","status":"succeeded","resource_id":"1"}
	// 200 {"id":"1","request_id":"key-1","status":"open","subject":"printer"}
}

// Work that takes longer is accepted first, and settled by a worker of the
// publisher in a transaction of its own, which commits what the work wrote.
func ExampleTracker_Complete() {
	finish := func(ctx context.Context, db *sql.DB, tracker *service.Tracker[*sql.Tx], job int64, k service.Key) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		if _, err := tx.ExecContext(ctx, `UPDATE ticket SET status = 'open' WHERE id = ?`, job); err != nil {
			return err
		}
		if err := tracker.Complete(ctx, tx, k, fmt.Sprint(job), nil); err != nil {
			return err // such as service.ErrNotPending: it failed before, or its window is over
		}
		return tx.Commit()
	}
	_ = finish
}
