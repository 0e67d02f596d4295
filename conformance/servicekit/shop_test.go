package servicekit_test

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/agentic-go/agentic/conformance/servicekit"
	"github.com/agentic-go/agentic/internal/strictjson"
	"github.com/agentic-go/agentic/postgres"
	"github.com/agentic-go/agentic/service"
	"github.com/agentic-go/agentic/sqlite"
)

// shop is a publisher with two actions, order and refund, built on package service:
// numbers and nested members in its inputs, and evidence at nested pointers.
type shop struct {
	db       *sql.DB
	records  service.Store[*sql.Tx]
	question bool // placeholders are ?1 instead of $1
}

// startShop serves a shop, behind what wraps it; postgresURL is "" for SQLite.
func startShop(t *testing.T, postgresURL string, wraps ...func(http.Handler) http.Handler) servicekit.Config {
	t.Helper()
	var handler atomic.Pointer[http.Handler]
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*handler.Load()).ServeHTTP(w, r) }))
	t.Cleanup(ts.Close)
	path := filepath.Join(t.TempDir(), "shop.db")
	var end func() error
	start := func(ctx context.Context) error {
		s := &shop{question: postgresURL == ""}
		h, err := s.open(ctx, ts.URL, postgresURL, path)
		for _, wrap := range wraps {
			h = wrap(h)
		}
		if err == nil {
			handler.Store(&h)
			end = s.close
		}
		return err
	}
	if err := start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := end(); err != nil {
			t.Error(err)
		}
	})
	profile, openapi := shopDocuments(ts.URL)
	return servicekit.Config{
		Profile: profile, OpenAPI: openapi, Action: "order",
		Input:        []byte(`{"item":{"sku":"A/7 é","count":2},"price":19.90}`),
		OtherInput:   []byte(`{"item":{"sku":"A/7 é","count":3},"price":19.90}`),
		RefusedInput: []byte(`{"item":{"sku":"A/7 é","count":2000},"price":19.90}`),
		OtherAction:  "refund", OtherActionInput: []byte(`{"item":{"sku":"A/7 é","count":2},"price":19.90}`),
		First: bearer("ann"), Second: bearer("bob"), CountURL: "/count?of=order", CountPointer: "/counts/0",
		Restart: func(ctx context.Context) error {
			if err := end(); err != nil {
				return err
			}
			return start(ctx)
		},
		Owned: true, AllowLoopback: true,
	}
}

func (s *shop) open(ctx context.Context, origin, postgresURL, path string) (http.Handler, error) {
	var err error
	if s.records, err = s.store(ctx, postgresURL, path); err != nil {
		return nil, err
	}
	profile, openapi := shopDocuments(origin)
	var actions []service.Action[*sql.Tx]
	mux := http.NewServeMux()
	for _, id := range []string{"order", "refund"} {
		actions = append(actions, service.Action[*sql.Tx]{ID: id, Handle: s.sell})
		mux.Handle("GET /"+id+"/{id}", service.NoStore(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.read(w, r, id) })))
	}
	tracker, err := service.New(service.Config[*sql.Tx]{Store: s.records, Principal: token, Profile: profile, OpenAPI: openapi, AllowLoopback: true}, actions...)
	if err != nil {
		return nil, err
	}
	mux.HandleFunc("GET /count", func(w http.ResponseWriter, r *http.Request) {
		var n int
		if err := s.db.QueryRowContext(r.Context(), s.sql("SELECT count(*) FROM sale WHERE action = $1"), r.FormValue("of")).Scan(&n); err != nil {
			problem(w, 500)
			return
		}
		reply(w, 200, "application/json", fmt.Sprintf(`{"counts":[%d]}`, n))
	})
	return mux, tracker.Register(mux)
}

func (s *shop) store(ctx context.Context, postgresURL, path string) (service.Store[*sql.Tx], error) {
	key := "integer PRIMARY KEY"
	if s.question {
		dsn, err := sqlite.DSN(path)
		if err != nil {
			return nil, err
		}
		if s.db, err = sql.Open("sqlite", dsn); err != nil {
			return nil, err
		}
		if err := sqlite.Migrate(ctx, s.db); err != nil {
			return nil, err
		}
	} else {
		var err error
		key = "bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY"
		if s.db, err = sql.Open("pgx", postgresURL); err != nil {
			return nil, err
		}
		if err := postgres.MigrateSQL(ctx, s.db, ""); err != nil {
			return nil, err
		}
	}
	if _, err := s.db.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS sale (id "+key+", action text, owner text, request_id text, input text)"); err != nil {
		return nil, err
	}
	if s.question {
		return sqlite.OpenStore(ctx, sqlite.StoreConfig{DB: s.db})
	}
	return postgres.NewSQLStore(ctx, postgres.SQLStoreConfig{DB: s.db})
}

func (s *shop) close() error {
	if c, ok := s.records.(io.Closer); ok {
		if err := c.Close(); err != nil {
			return err
		}
	}
	return s.db.Close()
}

func (s *shop) sql(text string) string {
	if s.question {
		return strings.ReplaceAll(text, "$", "?")
	}
	return text
}

func token(r *http.Request) (string, error) {
	if who, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		return who, nil
	}
	return "", &service.AuthError{}
}

func (s *shop) sell(ctx context.Context, tx *sql.Tx, r service.Request) (service.Result, error) {
	v, err := strictjson.Parse(r.Input)
	if err != nil {
		return service.Result{}, err
	}
	count, _ := v.Lookup("/item/count")
	d, ok := count.Decimal()
	if n, whole := d.Int64(); !ok || !whole || n < 1 || n > 1000 {
		return service.RefusedWith(http.StatusUnprocessableEntity, nil), nil
	}
	var id int64
	err = tx.QueryRowContext(ctx, s.sql("INSERT INTO sale (action, owner, request_id, input) VALUES ($1, $2, $3, $4) RETURNING id"),
		r.Key.Action, r.Key.Principal, r.Key.RequestID, string(r.Input)).Scan(&id)
	return service.DoneWith(strconv.FormatInt(id, 10), nil), err
}

func (s *shop) read(w http.ResponseWriter, r *http.Request, action string) {
	who, err := token(r)
	if err != nil {
		service.Unauthenticated(w, err)
		return
	}
	var request, input string
	id, _ := strconv.ParseInt(r.PathValue("id"), 10, 64)
	err = s.db.QueryRowContext(r.Context(), s.sql("SELECT request_id, input FROM sale WHERE id = $1 AND action = $2 AND owner = $3"), id, action, who).Scan(&request, &input)
	if err != nil {
		problem(w, 404)
		return
	}
	reply(w, 200, "application/hal+json", fmt.Sprintf(`{"sale":{"id":%q,"by":[%s],"state":"placed"},"of":%s}`, r.PathValue("id"), strictjson.Quote(request), input))
}

// shopDocuments describe both actions, with the paths /ID, /ID-requests/{requestId}
// and /ID/{saleId}.
func shopDocuments(origin string) (profile, openapi []byte) {
	var actions, paths []string
	for _, id := range []string{"order", "refund"} {
		actions = append(actions, fmt.Sprintf(`{"id":%[1]q,"description":"Sell, or take back.","openapi":"/openapi.json",
			"submit":"submit-%[1]s","status":"status-%[1]s","verify":"verify-%[1]s",
			"request":{"header":"Idempotency-Key","scope":"principal-action","retentionSeconds":3600},
			"bindings":{"statusRequestId":"requestId","verifyResourceId":"saleId"},
			"evidence":{"resourceIdPointer":"/sale/id","requestIdPointer":"/sale/by/0","statePointer":"/sale/state","successValues":["placed"],
				"inputBindings":[{"inputPointer":"/item","resourcePointer":"/of/item"},{"inputPointer":"/price","resourcePointer":"/of/price"}]},
			"recovery":{"maxChecks":3,"checkDelayMs":50,"timeoutMs":3000,"retry":"never-automatically"}}`, id))
		read := `{"get":{"operationId":%q,"parameters":[{"name":%q,"in":"path","required":true,"schema":{"type":"string"}}],"responses":{}}}`
		paths = append(paths, fmt.Sprintf(`"/%[1]s":{"post":{"operationId":"submit-%[1]s","parameters":[{"name":"Idempotency-Key","in":"header","required":true}],
			"requestBody":{"content":{"application/json":{"schema":{"type":"object"}}}},"responses":{}}}`, id),
			fmt.Sprintf(`"/%s-requests/{requestId}":`+read, id, "status-"+id, "requestId"),
			fmt.Sprintf(`"/%s/{saleId}":`+read, id, "verify-"+id, "saleId"))
	}
	return []byte(`{"agentic":"0.1.0-draft","origin":"` + origin + `","actions":[` + strings.Join(actions, ",") + `]}`),
		[]byte(`{"openapi":"3.1.0","info":{"title":"t","version":"1"},"paths":{` + strings.Join(paths, ",") + `}}`)
}
