package archtest

import "strings"

// module is the path of this module; packages are named below by their place in
// it, the root by ".".
const module = "github.com/agentic-go/agentic"

// arrows has one line for every package: the packages of this module that its
// production code may import. They go one way, from the command down to strict
// JSON, and a package that is not here may not exist.
var arrows = map[string]string{
	"cmd/agentic": "internal/cli",
	"internal/cli": ". client transport desk conformance internal/deskcmd internal/workcmd internal/conformcmd internal/mcpcmd internal/place internal/telemetry internal/ticket internal/demo internal/documents" +
		" internal/render internal/advice internal/escape internal/inputschema internal/scenario",
	"internal/place":        "client desk sqlite postgres fleet internal/advice internal/escape internal/filelock",
	"internal/demo":         ". client transport sqlite internal/ticket internal/documents internal/render internal/advice internal/escape internal/strictjson",
	"internal/conformcmd":   ". conformance conformance/clientkit conformance/servicekit internal/sim internal/render internal/advice internal/escape internal/privatefile internal/strictjson",
	"internal/deskcmd":      ". client desk internal/render internal/advice internal/escape internal/privatefile",
	"internal/workcmd":      ". client fleet reconcile internal/place internal/telemetry internal/render internal/advice",
	"internal/documents":    ". transport internal/advice",
	"internal/render":       ". client desk reconcile internal/escape",
	"internal/scenario":     ". client internal/advice internal/strictjson",
	"internal/advice":       "",
	"examples/host":         ". client transport sqlite",
	"examples/fleet":        ". client transport postgres reconcile fleet desk",
	"examples/publisher":    "service sqlite postgres",
	"transport":             ". client",
	"sqlite":                ". client service internal/savedform internal/filelock internal/groupcommit internal/privatefile",
	"postgres":              ". client service internal/savedform internal/lease internal/pgcheck internal/pgfold internal/pgmigrate",
	"service":               ". internal/strictjson internal/inputschema",
	"ledgertest":            ". client desk",
	"reconcile":             ". client",
	"fleet":                 ". client reconcile postgres",
	"wiretest":              "",
	"storetest":             "service",
	"client":                ".",
	"conformance":           ". internal/escape internal/strictjson",
	"conformance/clientkit": ". conformance conformance/clientkit/internal/story conformance/clientkit/internal/excerpt internal/ticket internal/strictjson",

	"conformance/clientkit/internal/excerpt": "",
	"conformance/clientkit/internal/story":   ". conformance internal/strictjson",
	"conformance/servicekit":                 ". conformance transport internal/strictjson",
	"desk":                                   ". client",
	"internal/lease":                         "",
	"internal/pgcheck":                       "internal/pgmigrate",
	"internal/pgfold":                        "",
	"internal/pgmigrate":                     "internal/pgfold",
	"internal/savedform":                     ". client",
	"internal/sim":                           ". client internal/sim/durable internal/sim/choice",
	"internal/sim/choice":                    "",
	"internal/sim/durable":                   ". client",
	"internal/ticket":                        ". service sqlite postgres internal/strictjson",
	"internal/inputschema":                   ". internal/strictjson",
	".":                                      "internal/strictjson",
	"internal/strictjson":                    "",
	"internal/escape":                        "",
	"internal/telemetry":                     "internal/escape",
	"internal/filelock":                      "internal/privatefile",
	"internal/privatefile":                   "",
	"internal/groupcommit":                   "",
	"internal/archtest":                      "",
	"internal/pgtest":                        "", // for tests only
	"internal/proof":                         "", // tests only
	"internal/proof/hosts":                   "", // tests only
	"internal/proof/kits":                    "", // tests only
	"internal/proof/mcp":                     "", // tests only
	"internal/proof/mcpclients":              "", // tests only

	"internal/agentcall": ". client desk internal/escape internal/inputschema internal/strictjson",
	"internal/mcpserver": "internal/agentcall internal/escape internal/strictjson",
	"internal/mcpcmd":    ". client internal/agentcall internal/mcpserver internal/documents internal/advice internal/escape internal/strictjson internal/ticket",

	"examples/publisher/before": "", // as a publisher was before
}

// top has the packages that wire parts together. Tests of other packages may
// import anything of this module but these, unless the package is pure.
const top = "cmd/agentic internal/cli internal/demo examples/host examples/fleet examples/publisher examples/publisher/before"

// pure has the packages that only map values to values: no clock, file, socket,
// database or goroutine, in nothing they import from here either. Their tests
// keep to the package's own arrows. The Makefile tests these, and this package,
// without the race detector.
const pure = ". internal/strictjson internal/escape internal/inputschema"

// restricted says which packages may import a library, in production code: each
// dependency of go.mod, and what of the standard library acts on the world. The
// longest path that fits counts; "*" is everybody; a path of another module that
// is not here is refused. Tests may import whatever has a line.
var restricted = map[string]string{
	"github.com/go-json-experiment/json":       "internal/strictjson",
	"github.com/santhosh-tekuri/jsonschema/v6": "internal/inputschema",
	"modernc.org/sqlite":                       "sqlite examples/publisher examples/publisher/before",
	"github.com/jackc/pgx/v5":                  "postgres internal/place internal/ticket internal/pgtest examples/fleet examples/publisher examples/publisher/before fleet internal/pgcheck internal/pgfold internal/pgmigrate",
	"github.com/pressly/goose/v3":              "sqlite postgres internal/pgmigrate",
	"github.com/spf13/cobra":                   "internal/cli internal/deskcmd internal/workcmd internal/conformcmd internal/mcpcmd",
	"github.com/spf13/pflag":                   "internal/cli",
	"github.com/google/uuid":                   "client internal/demo internal/agentcall",
	"github.com/google/go-cmp":                 "storetest ledgertest",
	"github.com/rogpeppe/go-internal":          "",
	"github.com/anishathalye/porcupine":        "",
	"go.opentelemetry.io/otel":                 "client internal/telemetry", // the API; this line and the next three
	"go.opentelemetry.io/otel/attribute":       "client internal/telemetry",
	"go.opentelemetry.io/otel/codes":           "client internal/telemetry",
	"go.opentelemetry.io/otel/trace":           "client internal/telemetry internal/cli",
	"go.opentelemetry.io/otel/metric":          "client internal/telemetry internal/cli reconcile",
	"go.opentelemetry.io/otel/sdk":             "internal/telemetry",
	"go.opentelemetry.io/otel/exporters":       "internal/telemetry",
	"go.opentelemetry.io/contrib":              "internal/telemetry",
	"github.com/prometheus/client_golang":      "internal/telemetry",
	"github.com/prometheus/common":             "",
	"github.com/go-logr/logr":                  "internal/telemetry", // the SDK logs through it
	"golang.org/x/net/idna":                    ".",
	"golang.org/x/net/http/httpguts":           "transport internal/cli conformance/servicekit",
	"golang.org/x/net/dns/dnsmessage":          "",
	"golang.org/x/net/html":                    "",
	"golang.org/x/net/http2":                   "wiretest",
	"golang.org/x/sys":                         "internal/filelock internal/cli",
	"github.com/riverqueue/river":              "fleet",
	"golang.org/x/time":                        "reconcile",
	"golang.org/x/term":                        "internal/cli",
	"github.com/modelcontextprotocol/go-sdk":   "internal/mcpserver",

	"C":             "",
	"unsafe":        "",
	"plugin":        "",
	"expvar":        "",
	"log":           "internal/cli conformance/clientkit", // to silence net/http
	"log/slog":      "client transport sqlite postgres internal/place internal/ticket internal/cli internal/demo examples/host examples/fleet service examples/publisher examples/publisher/before reconcile internal/telemetry fleet internal/workcmd internal/agentcall internal/mcpserver internal/mcpcmd",
	"testing":       "storetest ledgertest internal/pgtest wiretest",
	"encoding/json": "conformance internal/savedform internal/ticket internal/render internal/demo examples/host service examples/publisher examples/publisher/before internal/telemetry internal/agentcall internal/mcpserver",
	"encoding/gob":  "",
	"database/sql":  "sqlite postgres internal/ticket examples/publisher examples/publisher/before internal/pgmigrate",
	"syscall":       "transport sqlite internal/filelock internal/privatefile internal/cli internal/demo internal/pgtest examples/fleet conformance/clientkit",
	"os":            "sqlite internal/place internal/filelock internal/privatefile internal/ticket internal/documents internal/demo internal/cli internal/deskcmd cmd/agentic examples/host examples/fleet internal/pgtest examples/publisher examples/publisher/before conformance/clientkit conformance/clientkit/internal/story internal/conformcmd",
	"os/exec":       "internal/demo internal/pgtest conformance/clientkit internal/conformcmd",
	"io/ioutil":     "",
	"crypto/rand":   "client internal/pgtest examples/publisher examples/publisher/before wiretest internal/mcpserver",
	"math/rand":     "client internal/filelock postgres reconcile fleet internal/pgfold conformance",
	"net":           "transport internal/ticket internal/demo internal/workcmd examples/publisher examples/publisher/before internal/telemetry conformance/servicekit conformance/clientkit conformance/clientkit/internal/story wiretest internal/mcpserver internal/mcpcmd",
	"net/http":      "client transport internal/ticket internal/demo internal/cli examples/host service examples/publisher examples/publisher/before internal/telemetry conformance/servicekit conformance/clientkit conformance/clientkit/internal/story conformance/clientkit/internal/excerpt wiretest internal/conformcmd internal/mcpserver internal/mcpcmd",
	"net/url":       "*",
	"net/netip":     "*",
}

// neverBelow has what a package may not even reach through others.
var neverBelow = map[string]string{
	".":                   "net net/http database/sql os/exec os/signal log/slog",
	"internal/strictjson": "net net/http database/sql os/exec os/signal log/slog",
	"internal/escape":     "net net/http database/sql os/exec os/signal log/slog",
}

// A ban keeps production code from using some names of a library.
type ban struct {
	path  string // of the library
	names string
	in    string // packages; "*" is all
	but   string // packages and files that may
	why   string
}

var bans = []ban{
	{"time", "Now Since Until Sleep After AfterFunc Tick NewTimer NewTicker", pure, "",
		"a pure package has no clock"},
	// These read what this program itself wrote, a column, and what service has
	// checked; before is a program that has the fault.
	{"encoding/json", "Unmarshal NewDecoder Decoder", "*", "internal/savedform examples/publisher/shop.go examples/publisher/before/shop.go",
		"encoding/json takes duplicate members and other cases of a name (D1): read with internal/strictjson"},
	{"net/http", "Client Transport Server NewRequest NewRequestWithContext ListenAndServe", "client", "",
		"the engine opens no socket; package transport does"},
	{"net/http", "DefaultClient DefaultTransport Get Head Post PostForm", "*", "",
		"the default client follows redirects, has no timeout and goes anywhere"},
	{"net/http", "ProxyFromEnvironment", "*", "",
		"no proxy from the environment"},
	{"net/http", "DefaultServeMux Handle HandleFunc ListenAndServe ListenAndServeTLS", "*", "",
		"a server has its own mux and time limits"},
	{"os", "Exit", "*", "cmd/agentic internal/cli examples/host examples/fleet examples/publisher examples/publisher/before",
		"only the command ends the process"},
	{"os", "Stdin Stdout Stderr", "*", "cmd/agentic internal/cli examples/host examples/fleet examples/publisher examples/publisher/before",
		"only the command reads and writes the terminal"},
	{"fmt", "Print Printf Println", "*", "examples/host",
		"print to the writer that was given"},
}

// Limits of size and shape.
const (
	maxFileLines        = 600  // of a Go file, tests too
	maxPackageLines     = 3000 // of a package without its tests
	maxMainLines        = 20   // of cmd/agentic without comments and blank lines
	maxInterfaceMethods = 8
)

// in reports whether a list of the tables has a name.
func in(list, name string) bool {
	for _, s := range strings.Fields(list) {
		if s == name || s == "*" {
			return true
		}
	}
	return false
}
