package place

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentic-go/agentic/client"
	"github.com/agentic-go/agentic/internal/advice"
)

const secret = "hunter2secret"

func TestParse(t *testing.T) {
	for name, want := range map[string]struct {
		shown, schema, password, user, database string
		conns                                   int32
	}{
		"postgres://ann@db.example/agent":                         {"postgres://ann@db.example/agent", "agentic", "", "ann", "agent", 4},
		"postgresql://ann:" + secret + "@db.example:6432/agent":   {"postgresql://ann@db.example:6432/agent", "agentic", secret, "ann", "agent", 4},
		"postgres://ann@db/agent?password=" + secret:              {"postgres://ann@db/agent", "agentic", secret, "ann", "agent", 4},
		"postgres://ann:a%40%23b@db/agent?agentic_schema=desk":    {"postgres://ann@db/agent?agentic_schema=desk", "desk", "a@#b", "ann", "agent", 4},
		"postgres://ann@db/agent?pool_max_conns=20&sslmode=allow": {"postgres://ann@db/agent?pool_max_conns=20&sslmode=allow", "agentic", "", "ann", "agent", 20},
		"postgres:///agent?host=%2Frun%2Fpostgresql&user=bob":     {"postgres:///agent?host=%2Frun%2Fpostgresql&user=bob", "agentic", "", "bob", "agent", 4},
	} {
		t.Setenv("PGPASSWORD", "")
		t.Setenv("PGPASSFILE", filepath.Join(t.TempDir(), "absent"))
		p, err := Parse(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		c := p.config.ConnConfig
		if p.String() != want.shown || p.schema != want.schema || c.Password != want.password || c.User != want.user || c.Database != want.database || !p.Postgres() {
			t.Errorf("%s: %s, schema %s, user %s, database %s, password as wanted: %v", name, p, p.schema, c.User, c.Database, c.Password == want.password)
		}
		if p.config.MaxConns < want.conns || want.conns == 20 && p.config.MaxConns != 20 || c.ConnectTimeout != connectTimeout {
			t.Errorf("%s: %d connections, timeout %s", name, p.config.MaxConns, c.ConnectTimeout)
		}
		if _, known := c.RuntimeParams[schemaKey]; known || c.RuntimeParams["application_name"] != "agentic" {
			t.Errorf("%s: parameters %v", name, c.RuntimeParams)
		}
		if again, err := Parse(p.String()); err != nil || again.String() != p.String() || again.schema != p.schema {
			t.Errorf("%s: %s does not name the same place again: %v", name, p, err)
		}
	}
	for _, name := range []string{"ledger.db", "./:memory:", "/a/b c.db", "a@b", "postgres", "postgres:x", `C:\ledger.db`} {
		if p, err := Parse(name); err != nil || p.String() != name || p.Postgres() {
			t.Errorf("%s: %v, %v", name, p, err)
		}
	}
}

// Nothing that is refused tells a password, wherever it stands and however broken
// the rest is.
func TestRefused(t *testing.T) {
	for _, name := range []string{
		"", ":memory:", "file:ledger.db",
		"mysql://ann:" + secret + "@db/agent",
		"postgres:/ann:" + secret + "@db/agent",
		"PostgreSQL:/ann:" + secret + "@db/agent",
		"Postgres://ann:" + secret + "@db/agent",
		"host=db user=ann password=" + secret,
		"password = '" + secret + "' host=db",
		"postgres://ann:" + secret + "/x@db/agent",
		"postgres://ann:" + secret + "%zz@db/agent",
		"postgres://ann:" + secret + "#x@db/agent",
		"postgres://ann:x#" + secret + "@db/agent",
		"postgres://ann:" + secret + "@db:port/agent",
		"postgres://ann:" + secret + "@db:1:2/agent",
		"postgres://ann:" + secret + "@[::1/agent",
		"postgres://ann@db/agent?password=" + secret + "%zz",
		"postgres://ann@db/agent?password=" + secret + ";x",
		"postgres://ann@db/agent?sslpassword=" + secret,
		"postgres://ann:" + secret + "@db/agent?sslmode=perhaps",
		"postgres://ann:" + secret + "@db/agent?connect_timeout=never",
		"postgres://ann:" + secret + "@db/agent?pool_max_conns=1",
		"postgres://ann:" + secret + "@db/agent?pool_max_conns=many",
		"postgres://ann:" + secret + "@db/agent?search_path=public",
		"postgres://ann:" + secret + "@db/agent?agentic_schema=Agentic",
		"postgres://ann:" + secret + "@db/agent?agentic_schema=a;b",
		"postgres://ann:" + secret + "@db/agent?agentic_schema=pg_x",
		"postgres://ann:" + secret + "@db/agent?agentic_schema=a&agentic_schema=b",
		"postgres://ann:" + secret + "@db/agent?agentic_schema=",
		"postgres://ann:" + secret + "@db/agent?sslrootcert=/absent",
		"postgres://ann:" + secret + "@db/agent?service=" + secret,
	} {
		p, err := Parse(name)
		e, ok := errors.AsType[*advice.Error](err)
		if !ok || e.Code != advice.Usage || e.Remedy == "" {
			t.Errorf("%s: %v, %v", name, p, err)
			continue
		}
		if text := err.Error() + e.Remedy; !strings.HasSuffix(name, "service="+secret) && strings.Contains(text, secret) || strings.Contains(text, "%!") {
			t.Errorf("%s: says %s", name, text)
		}
	}
}

// What is wrong with one parameter is said of that one.
func TestRefusedParameter(t *testing.T) {
	for query, want := range map[string]string{
		"sslmode=verfy":                       "Give sslmode as disable, allow,",
		"application_name=x&pool_max_conns=0": "Give pool_max_conns as a whole number of 2 or more",
		"connect_timeout=x":                   "Give connect_timeout as a whole number of seconds",
		"pool_max_conn_lifetime=x":            "Mend pool_max_conn_lifetime",
		"agentic_shema=x":                     "is agentic_schema",
		"sslmode=verfy&connect_timeout=x":     "Write it as postgres://USER@",
		"pool_max_conns=1":                    "two connections or more",
	} {
		_, err := Parse("postgres://ann:" + secret + "@db/agent?" + query)
		if e, ok := errors.AsType[*advice.Error](err); !ok || !strings.Contains(e.Remedy, want) || strings.Contains(err.Error()+e.Remedy, secret) {
			t.Errorf("%s: %+v, want the remedy %q", query, err, want)
		}
	}
}

// What is shown of a URL names the same place and has no password.
func FuzzParse(f *testing.F) {
	f.Add("postgres://ann:secret@db/agent?agentic_schema=x")
	f.Add("postgres://ann@db:1,db:2/agent?password=a%40b&sslmode=disable")
	f.Add("postgresql://:p@/?host=/run&user=bob&passfile=/absent")
	f.Setenv("PGPASSWORD", "")
	f.Setenv("PGPASSFILE", filepath.Join(f.TempDir(), "absent"))
	f.Fuzz(func(t *testing.T, name string) {
		p, err := Parse(name)
		if err != nil || !p.Postgres() {
			return
		}
		again, err := Parse(p.String())
		if err != nil || again.String() != p.String() || again.schema != p.schema || again.config.ConnConfig.Host != p.config.ConnConfig.Host || again.config.ConnConfig.User != p.config.ConnConfig.User {
			t.Fatalf("%q shows %q: %v", name, p, err)
		}
		if again.config.ConnConfig.Password != "" {
			t.Errorf("%q shows a password in %q", name, p)
		}
	})
}

func TestFind(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	for _, tt := range []struct {
		flag string
		env  map[string]string
		want string
	}{
		{"a.db", map[string]string{"AGENTIC_LEDGER": "b.db"}, "a.db"},
		{"", map[string]string{"AGENTIC_LEDGER": "b.db", "XDG_STATE_HOME": "/x"}, "b.db"},
		{"", map[string]string{"AGENTIC_LEDGER": "postgres://ann:" + secret + "@db/agent"}, "postgres://ann@db/agent"},
		{"", map[string]string{"XDG_STATE_HOME": "/x"}, "/x/agentic/ledger.db"},
		{"", map[string]string{"XDG_STATE_HOME": "x"}, filepath.Join(home, ".local/state/agentic/ledger.db")},
	} {
		p, err := Find(tt.flag, func(name string) (string, bool) { v, ok := tt.env[name]; return v, ok })
		if err != nil || p.String() != tt.want {
			t.Errorf("%+v: %s, %v", tt, p, err)
		}
	}
}

// What cannot be reached has a reason and a remedy, and no password.
func TestUnreachable(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := l.Addr().String()
	l.Close()
	noTLS, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer noTLS.Close()
	go func() { // a server that refuses TLS
		for {
			c, err := noTLS.Accept()
			if err != nil {
				return
			}
			_, _ = c.Read(make([]byte, 8))
			_, _ = c.Write([]byte("N"))
			c.Close()
		}
	}()
	web, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer web.Close()
	go func() { // a server of something else
		for {
			c, err := web.Accept()
			if err != nil {
				return
			}
			_, _ = c.Read(make([]byte, 8))
			_, _ = c.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
			c.Close()
		}
	}()
	for url, want := range map[string]string{
		"postgres://ann:" + secret + "@" + web.Addr().String() + "/agent":                        "whether it is a PostgreSQL server",
		"postgres://ann:" + secret + "@" + closed + "/agent":                                     "is up and can be reached",
		"postgres://ann:" + secret + "@" + noTLS.Addr().String() + "/agent?sslmode=require":      "Look at TLS",
		"postgres://ann:" + secret + "@/agent?host=" + filepath.ToSlash(t.TempDir()) + "&port=1": "is up and can be reached",
	} {
		p, err := Parse(url)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		_, opening := p.Open(ctx, Options{})
		_, checking := p.Check(ctx)
		_, migrating := p.Migrate(ctx)
		for _, err := range []error{opening, checking, migrating} {
			if err == nil || !errors.Is(err, client.ErrLedger) || !strings.Contains(Remedy(err), want) || strings.Contains(err.Error()+Remedy(err), secret) || !strings.Contains(err.Error(), p.String()) {
				t.Errorf("%v, remedy %s", err, Remedy(err))
			}
		}
	}
}

func TestFile(t *testing.T) {
	ctx := t.Context()
	path := filepath.Join(t.TempDir(), "state", "ledger.db")
	p, err := Parse(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Open(ctx, Options{MustExist: true}); err == nil {
		t.Error("opened what is not there")
	}
	if _, err := p.Check(ctx); err == nil {
		t.Error("checked what is not there")
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Fatal("it was made")
	}
	for range 2 {
		if v, err := p.Migrate(ctx); err != nil || !strings.HasPrefix(v, "version ") {
			t.Fatalf("%s, %v", v, err)
		}
	}
	h, err := p.Check(ctx)
	if err != nil || !h.OK || h.Place != path || h.Kind != "sqlite" || len(h.Findings) < 5 {
		t.Fatalf("%+v, %v", h, err)
	}
	for _, f := range h.Findings {
		if f.Level != "ok" {
			t.Errorf("%+v", f)
		}
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if h, err := p.Check(ctx); err != nil || h.OK {
		t.Errorf("a file that everybody reads: %+v, %v", h, err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := 4096 + 8; i < len(data); i++ { // all pages but the first
		data[i] ^= 0x5a
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if h, err := p.Check(ctx); err == nil && h.OK {
		t.Errorf("a damaged file: %+v", h)
	}
}
