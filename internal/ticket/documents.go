package ticket

import (
	_ "embed"
	"strconv"
	"strings"
	"time"

	"github.com/agentic-go/agentic/internal/strictjson"
)

//go:embed profile.json
var profileTemplate string

//go:embed openapi.json
var openapiTemplate string

// exampleTimeout is recovery.timeoutMs of the example profile.
const exampleTimeout = 3 * time.Second

// Profile is the example profile of the reading guide with that origin: what the
// service serves at /agentic.json, unless its fault or retention says otherwise.
func Profile(origin string) []byte {
	return profile(origin, DefaultRetention, exampleTimeout)
}

func profile(origin string, retention, timeout time.Duration) []byte {
	return []byte(strings.NewReplacer(
		`"{origin}"`, string(strictjson.Quote(origin)),
		`"{retentionSeconds}"`, strconv.FormatInt(int64(retention/time.Second), 10),
		`"{timeoutMs}"`, strconv.FormatInt(timeout.Milliseconds(), 10),
	).Replace(profileTemplate))
}

// OpenAPI is the OpenAPI 3.1 document of the service: what it serves at
// /openapi.json.
func OpenAPI(origin string) []byte {
	title := strictjson.Quote("Reference ticket service at " + origin)
	return []byte(strings.Replace(openapiTemplate, `"{title}"`, string(title), 1))
}
