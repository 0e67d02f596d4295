package place

import (
	"context"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/agentic-go/agentic/internal/advice"
	"github.com/agentic-go/agentic/internal/escape"
)

// Place names a ledger. The zero Place names none.
type Place struct {
	path   string          // of a SQLite file, or
	config *pgxpool.Config // the database, and
	sized  bool            // with a number of connections, and
	schema string          // the schema in it, and
	shown  string          // its URL without the password
}

// String is the place as it may be shown, and as it can be given again: without a
// password.
func (p Place) String() string {
	if p.config != nil {
		return p.shown
	}
	return p.path
}

// Postgres reports whether the place is a PostgreSQL database.
func (p Place) Postgres() bool { return p.config != nil }

// Find is the place that is named by the flag, by AGENTIC_LEDGER, or else a file in
// the state folder of the XDG Base Directory Specification. The error is one of
// usage, with advice.
func Find(flag string, lookupEnv func(string) (string, bool)) (Place, error) {
	env := func(name string) string {
		value, _ := lookupEnv(name)
		return value
	}
	for _, name := range []string{flag, env("AGENTIC_LEDGER")} {
		if name != "" {
			return Parse(name)
		}
	}
	// A relative folder is to be ignored: the next command may run elsewhere.
	if dir := env("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return Place{path: filepath.Join(dir, "agentic", "ledger.db")}, nil
	}
	if home, err := os.UserHomeDir(); err == nil && filepath.IsAbs(home) {
		return Place{path: filepath.Join(home, ".local", "state", "agentic", "ledger.db")}, nil
	}
	return Place{}, advice.BadUsage("there is no place for the ledger: neither XDG_STATE_HOME nor the home folder is an absolute path", "Give one with --ledger FILE|URL or AGENTIC_LEDGER.")
}

var (
	scheme  = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9+.-]*://|(?i:postgres(ql)?):/)`) // a slash too few is no file either
	keyword = regexp.MustCompile(`(^|\s)(host|hostaddr|port|dbname|user|password|service|sslmode)\s*=`)
)

// Parse reads the name of a place: the name of a file, or a URL that begins with
// postgres:// or postgresql://. The error is one of usage, with advice; what could
// have a password in it is not quoted.
func Parse(name string) (Place, error) {
	switch {
	case strings.HasPrefix(name, "postgres://"), strings.HasPrefix(name, "postgresql://"):
		return parseURL(name)
	case scheme.MatchString(name):
		return Place{}, advice.BadUsage("the ledger is neither the name of a file nor a URL that begins with postgres://", writeURL)
	case keyword.MatchString(name):
		return Place{}, advice.BadUsage("the ledger is given as keywords and values of a connection, not as a URL", writeURL)
	case name == "", name == ":memory:", strings.HasPrefix(name, "file:"):
		return Place{}, advice.BadUsage("the ledger "+name+" is not the name of a file", "Give a file that stays: what it forgets could be sent again. A file of this name is ./"+name+".")
	}
	return Place{path: name}, nil
}

// schemaKey is the one parameter of a URL that is ours and not pgx's.
const schemaKey = "agentic_schema"

// defaultSchema is where a URL without agentic_schema has the ledger.
const defaultSchema = "agentic"

const (
	writeURL = "Write it as postgres://USER@HOST:PORT/DATABASE, with the password in PGPASSWORD or in a password file (PGPASSFILE)."

	// connectTimeout is for a URL and an environment that name none: somebody waits.
	connectTimeout = 10 * time.Second

	// minConns is what a ledger needs of a pool.
	minConns = 2
)

var plainSchema = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,62}$`)

// parseURL reads the URL of a database. The password is taken out before pgx sees
// the rest, so that no error of pgx can quote it.
func parseURL(text string) (Place, error) {
	const encode = "A character that means something in a URL is percent-encoded, such as %40 for @. " + writeURL
	u, err := url.Parse(text)
	if err != nil || u.Fragment != "" || strings.HasSuffix(text, "#") {
		return Place{}, advice.BadUsage("the URL of the ledger cannot be read", encode) // err quotes it
	}
	q, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return Place{}, advice.BadUsage("the parameters in the URL of the ledger cannot be read", encode)
	}
	password, given := u.User.Password()
	if q.Has("password") {
		password, given = q.Get("password"), true
		q.Del("password")
	}
	if u.User != nil {
		u.User = url.User(u.User.Username())
	}
	schema := defaultSchema
	switch names := q[schemaKey]; {
	case q.Has("sslpassword"):
		return Place{}, advice.BadUsage("the URL of the ledger has the password of a key in it", "Leave sslpassword out and set PGSSLPASSWORD.")
	case misspelt(q) != "":
		return Place{}, advice.BadUsage("the URL of the ledger has no parameter "+misspelt(q), "The one of this program is "+schemaKey+".")
	case q.Has("search_path"):
		return Place{}, advice.BadUsage("the ledger has no search_path: its tables are in one schema", "Name it with "+schemaKey+"=NAME in the URL, or leave it out for "+defaultSchema+".")
	case len(names) > 1, len(names) == 1 && (!plainSchema.MatchString(names[0]) || strings.HasPrefix(names[0], "pg_") || names[0] == "information_schema"):
		return Place{}, advice.BadUsage(schemaKey+" in the URL of the ledger is not one plain name", "Give 1 to 63 of a-z, 0-9 and _, not beginning with a digit or pg_.")
	case len(names) == 1:
		schema = names[0]
	}
	if u.Host == "" && u.Path == "" {
		u.Path = "/" // else String leaves the // out
	}
	u.RawQuery = q.Encode()
	shown := u.String()
	q.Del(schemaKey)
	u.RawQuery = q.Encode()
	config, err := pgxpool.ParseConfig(u.String())
	if err != nil {
		return Place{}, advice.BadUsage("the URL of the ledger: "+err.Error(), unreadable(*u, q))
	}
	if config.MaxConns < minConns {
		return Place{}, advice.BadUsage("the URL of the ledger: pool_max_conns is below 2", "Give it two connections or more.")
	}
	c := config.ConnConfig
	if given {
		c.Password = password
	}
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = connectTimeout
	}
	if c.RuntimeParams["application_name"] == "" {
		c.RuntimeParams["application_name"] = "agentic"
	}
	return Place{config: config, sized: q.Has("pool_max_conns"), schema: schema, shown: shown}, nil
}

// misspelt is a parameter that would be ours, and is none.
func misspelt(q url.Values) string {
	for name := range q {
		if strings.HasPrefix(name, "agentic_") && name != schemaKey {
			return name
		}
	}
	return ""
}

// unreadable says what to do about a URL that pgx cannot read: mend the parameter
// without which it can.
func unreadable(u url.URL, q url.Values) string {
	for _, name := range slices.Sorted(maps.Keys(q)) {
		rest := maps.Clone(q)
		rest.Del(name)
		u.RawQuery = rest.Encode()
		if _, err := pgxpool.ParseConfig(u.String()); err != nil {
			continue
		}
		if form := forms[name]; form != "" {
			return "Give " + name + " as " + form + ", or leave it out."
		}
		return "Mend " + name + " in the URL, or leave it out."
	}
	return writeURL
}

// forms are what some parameters of a URL take.
var forms = map[string]string{
	"sslmode":         "disable, allow, prefer, require, verify-ca or verify-full",
	"pool_max_conns":  "a whole number of 2 or more",
	"pool_min_conns":  "a whole number",
	"connect_timeout": "a whole number of seconds",
}

// pool makes the connections of a command, conns at most unless that is 0 or the URL
// says how many. They are opened when they are needed.
func (p Place) pool(conns int) (*pgxpool.Pool, error) {
	config := p.config.Copy()
	if conns > 0 && !p.sized {
		config.MaxConns = int32(conns)
	}
	return pgxpool.NewWithConfig(context.Background(), config)
}

// command is a command about this place, to copy.
func (p Place) command(name string) string {
	return name + " --ledger " + escape.Shell(p.String())
}

// Error is what went wrong at a place. It wraps the reason.
type Error struct {
	Place Place
	Err   error
}

func (e *Error) Error() string { return e.Place.String() + ": " + e.Err.Error() }

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }
