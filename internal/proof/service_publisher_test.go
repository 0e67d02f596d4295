package proof

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/agentic-go/agentic/postgres"
	tracking "github.com/agentic-go/agentic/service"
	"github.com/agentic-go/agentic/sqlite"
)

// publisherRole makes the test program a publisher: a process that serves the
// actions of a profile on a socket that it is given, until it is killed or its
// standard input ends.
const publisherRole = "AGENTIC_PROOF_PUBLISHER"

// publication is what a publisher's process is told.
type publication struct {
	Store    string // "sqlite" or "postgres"
	Database string // its DSN or URL
	Origin   string
}

// maxWait is the tracker's: a store that is stuck shows as 503.
const maxWait = 5 * time.Second

// wish is the input of an action: the publisher does as it is told.
type wish struct {
	Subject string `json:"subject"`
	Do      string `json:"do"`                 // "done", "refuse" or "pending"
	DelayMS int    `json:"delay_ms,omitempty"` // inside the transaction
}

// thing is a row of the publisher. Nothing in its table is unique: whatever runs
// twice shows.
type thing struct{ ID, Principal, Action, Key, Body string }

// settling is the body of POST /settle, by which a test settles pending work.
type settling struct {
	Principal, Action, Key string
	Resource               string // "" is Fail
}

// database is what a publisher does with its own table and transactions.
type database[Tx any] struct {
	store  tracking.Store[Tx]
	insert func(ctx context.Context, tx Tx, t thing) error
	once   func(ctx context.Context, tx Tx, t thing) error // insert, unless the ID is there
	read   func(ctx context.Context, id string) (thing, error)
	// bare is Store.Transact without a tracker's Claim and Settle.
	bare func(ctx context.Context, f func(context.Context, Tx) error) error
}

// publisherMain serves until the process ends.
func publisherMain(spec string) error {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // the parent holds it open
		os.Exit(0)
	}()
	return publish(context.Background(), spec)
}

func publish(ctx context.Context, spec string) error {
	var p publication
	if err := json.Unmarshal([]byte(spec), &p); err != nil {
		return err
	}
	var mux http.Handler
	var err error
	switch p.Store {
	case "sqlite":
		mux, err = onSQLite(ctx, p)
	case "postgres":
		mux, err = onPostgres(ctx, p)
	default:
		err = fmt.Errorf("no store %q", p.Store)
	}
	if err != nil {
		return err
	}
	ln, err := net.FileListener(os.NewFile(3, "listener"))
	if err != nil {
		return err
	}
	fmt.Println("ready")
	return (&http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}).Serve(ln)
}

func onSQLite(ctx context.Context, p publication) (http.Handler, error) {
	db, err := sql.Open("sqlite", p.Database)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(8)
	db.SetMaxIdleConns(8)
	store, err := sqlite.OpenStore(ctx, sqlite.StoreConfig{DB: db})
	if err != nil {
		return nil, err
	}
	d, err := sqliteDatabase(ctx, db, store)
	if err != nil {
		return nil, err
	}
	return publisher(p, d)
}

func sqliteDatabase(ctx context.Context, db *sql.DB, store tracking.Store[*sql.Tx]) (database[*sql.Tx], error) {
	d := database[*sql.Tx]{store: store, bare: store.Transact}
	var errs []error
	prepare := func(query string) *sql.Stmt {
		s, err := db.PrepareContext(ctx, query)
		errs = append(errs, err)
		return s
	}
	insert := prepare(`INSERT INTO thing (id, principal, action, key, body) VALUES (?, ?, ?, ?, ?)`)
	once := prepare(`INSERT INTO thing (id, principal, action, key, body) SELECT ?1, ?2, ?3, ?4, ?5 WHERE NOT EXISTS (SELECT 1 FROM thing WHERE id = ?1)`)
	read := prepare(`SELECT id, principal, action, key, body FROM thing WHERE id = ?`)
	run := func(s *sql.Stmt) func(context.Context, *sql.Tx, thing) error {
		return func(ctx context.Context, tx *sql.Tx, t thing) error {
			_, err := tx.StmtContext(ctx, s).ExecContext(ctx, t.ID, t.Principal, t.Action, t.Key, t.Body)
			return err
		}
	}
	d.insert, d.once = run(insert), run(once)
	d.read = func(ctx context.Context, id string) (t thing, err error) {
		return t, read.QueryRowContext(ctx, id).Scan(&t.ID, &t.Principal, &t.Action, &t.Key, &t.Body)
	}
	return d, errors.Join(errs...)
}

// poolSize is that of a publisher's process.
const poolSize = 32

func onPostgres(ctx context.Context, p publication) (http.Handler, error) {
	config, err := pgxpool.ParseConfig(p.Database)
	if err != nil {
		return nil, err
	}
	config.MaxConns = poolSize
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	store, err := postgres.NewStore(ctx, postgres.StoreConfig{Pool: pool})
	if err != nil {
		return nil, err
	}
	return publisher(p, postgresDatabase(pool, store))
}

func postgresDatabase(pool *pgxpool.Pool, store tracking.Store[pgx.Tx]) database[pgx.Tx] {
	run := func(query string) func(context.Context, pgx.Tx, thing) error {
		return func(ctx context.Context, tx pgx.Tx, t thing) error {
			_, err := tx.Exec(ctx, query, t.ID, t.Principal, t.Action, t.Key, t.Body)
			return err
		}
	}
	return database[pgx.Tx]{
		store:  store,
		insert: run(`INSERT INTO thing (id, principal, action, key, body) VALUES ($1, $2, $3, $4, $5)`),
		once:   run(`INSERT INTO thing (id, principal, action, key, body) SELECT $1::text, $2, $3, $4, $5 WHERE NOT EXISTS (SELECT FROM thing WHERE id = $1)`),
		read: func(ctx context.Context, id string) (t thing, err error) {
			return t, pool.QueryRow(ctx, `SELECT id, principal, action, key, body FROM thing WHERE id = $1`, id).
				Scan(&t.ID, &t.Principal, &t.Action, &t.Key, &t.Body)
		},
		bare: func(ctx context.Context, f func(context.Context, pgx.Tx) error) error {
			return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error { return f(ctx, tx) })
		},
	}
}

// actionIDs are the actions of the publisher, all with the same handler.
var actionIDs = []string{"thing", "order"}

// publisher is the publisher's program: its actions tracked, its reads, an action
// without tracking, and a way for tests to settle pending work.
func publisher[Tx any](p publication, d database[Tx]) (http.Handler, error) {
	profile, openapi := publisherDocuments(p.Origin)
	var actions []tracking.Action[Tx]
	for _, id := range actionIDs {
		actions = append(actions, tracking.Action[Tx]{ID: id, Handle: d.handle})
	}
	tracker, err := tracking.New(tracking.Config[Tx]{Store: d.store, Principal: bearerName, Profile: profile, OpenAPI: openapi,
		AllowLoopback: true, MaxWait: maxWait}, actions...)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	for _, id := range actionIDs {
		mux.HandleFunc("GET /"+id+"/{id}", d.serveRead)
	}
	mux.HandleFunc("POST /bare", d.serveBare)
	mux.HandleFunc("POST /settle", func(w http.ResponseWriter, r *http.Request) { d.serveSettle(tracker, w, r) })
	return mux, tracker.Register(mux)
}

func bearerName(r *http.Request) (string, error) {
	who, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return "", errors.New("no token")
	}
	return who, nil
}

func (d database[Tx]) handle(ctx context.Context, tx Tx, r tracking.Request) (tracking.Result, error) {
	var in wish
	if err := json.Unmarshal(r.Input, &in); err != nil {
		return tracking.Result{}, err
	}
	time.Sleep(time.Duration(in.DelayMS) * time.Millisecond)
	if in.Do == "pending" {
		return tracking.PendingWith(nil), nil
	}
	t := thing{ID: "T-" + rand.Text(), Principal: r.Key.Principal, Action: r.Key.Action, Key: r.Key.RequestID, Body: in.Subject}
	if err := d.insert(ctx, tx, t); err != nil {
		return tracking.Result{}, err
	}
	if in.Do == "refuse" {
		return tracking.RefusedWith(http.StatusUnprocessableEntity, nil), nil
	}
	return tracking.DoneWith(t.ID, t.answer()), nil
}

// answer is the representation of a thing.
func (t thing) answer() []byte {
	b, _ := json.Marshal(map[string]string{"id": t.ID, "request_id": t.Key, "status": "open", "subject": t.Body}) // strings always marshal
	return b
}

func (d database[Tx]) serveRead(w http.ResponseWriter, r *http.Request) {
	tracking.NoStore(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t, err := d.read(r.Context(), r.PathValue("id"))
		if err != nil {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(t.answer())
	})).ServeHTTP(w, r)
}

// serveBare is the endpoint as it was before tracking: the same insert, committed
// the same way, and the same answer.
func (d database[Tx]) serveBare(w http.ResponseWriter, r *http.Request) {
	principal, err := bearerName(r)
	if err != nil {
		http.Error(w, "who?", http.StatusUnauthorized)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 16<<10))
	var in wish
	if err == nil {
		err = json.Unmarshal(body, &in)
	}
	if err != nil {
		http.Error(w, "bad body", http.StatusBadRequest)
		return
	}
	t := thing{ID: "T-" + rand.Text(), Principal: principal, Action: "bare", Key: r.Header.Get("Idempotency-Key"), Body: in.Subject}
	err = d.bare(r.Context(), func(ctx context.Context, tx Tx) error { return d.insert(ctx, tx, t) })
	if err != nil {
		http.Error(w, "failed", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Location", "/thing/"+t.ID)
	w.WriteHeader(http.StatusCreated)
	_, _ = w.Write(t.answer())
}

// serveSettle answers 204, 409 when the work is not pending, and 503 when it is
// not known.
func (d database[Tx]) serveSettle(tracker *tracking.Tracker[Tx], w http.ResponseWriter, r *http.Request) {
	var in settling
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 16<<10))
	if err == nil {
		err = json.Unmarshal(body, &in)
	}
	if err != nil {
		http.Error(w, "bad body", http.StatusBadRequest)
		return
	}
	k := tracking.Key{Principal: in.Principal, Action: in.Action, RequestID: in.Key}
	err = d.store.Transact(r.Context(), func(ctx context.Context, tx Tx) error {
		if in.Resource == "" {
			return tracker.Fail(ctx, tx, k, http.StatusUnprocessableEntity, nil)
		}
		t := thing{ID: in.Resource, Principal: in.Principal, Action: in.Action, Key: in.Key, Body: "later"}
		if err := tracker.Complete(ctx, tx, k, t.ID, t.answer()); err != nil {
			return err
		}
		return d.once(ctx, tx, t) // the same settlement again is nil, and writes nothing
	})
	switch {
	case err == nil:
		w.WriteHeader(http.StatusNoContent)
	case errors.Is(err, tracking.ErrNotPending):
		http.Error(w, "not pending", http.StatusConflict)
	case errors.Is(err, tracking.ErrUnavailable), r.Context().Err() != nil:
		http.Error(w, "later", http.StatusServiceUnavailable)
	default:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

// publisherDocuments describe the actions, with the paths /ID,
// /ID-requests/{requestId} and /ID/{thingId}.
func publisherDocuments(origin string) (profile, openapi []byte) {
	var actions, paths []string
	for _, id := range actionIDs {
		actions = append(actions, fmt.Sprintf(`{"id":%[1]q,"description":"Make a thing.","openapi":"/openapi.json",
			"submit":"submit-%[1]s","status":"status-%[1]s","verify":"verify-%[1]s",
			"request":{"header":"Idempotency-Key","scope":"principal-action","retentionSeconds":86400},
			"bindings":{"statusRequestId":"requestId","verifyResourceId":"thingId"},
			"evidence":{"resourceIdPointer":"/id","requestIdPointer":"/request_id","statePointer":"/status","successValues":["open"],
				"inputBindings":[{"inputPointer":"/subject","resourcePointer":"/subject"}]},
			"recovery":{"maxChecks":3,"checkDelayMs":100,"timeoutMs":3000,"retry":"never-automatically"}}`, id))
		read := `{"get":{"operationId":%q,"parameters":[{"name":%q,"in":"path","required":true,"schema":{"type":"string"}}],"responses":{}}}`
		paths = append(paths, fmt.Sprintf(`"/%[1]s":{"post":{"operationId":"submit-%[1]s","parameters":[{"name":"Idempotency-Key","in":"header","required":true}],
			"requestBody":{"content":{"application/json":{"schema":{"type":"object","required":["subject"],
				"properties":{"subject":{"type":"string","maxLength":200}}}}}},"responses":{}}}`, id),
			fmt.Sprintf(`"/%s-requests/{requestId}":`+read, id, "status-"+id, "requestId"),
			fmt.Sprintf(`"/%s/{thingId}":`+read, id, "verify-"+id, "thingId"))
	}
	return []byte(fmt.Sprintf(`{"agentic":"0.1.0-draft","origin":%q,"actions":[`, origin) + strings.Join(actions, ",") + `]}`),
		[]byte(`{"openapi":"3.1.0","info":{"title":"t","version":"1"},"paths":{` + strings.Join(paths, ",") + `}}`)
}
