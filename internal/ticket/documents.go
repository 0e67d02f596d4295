package ticket

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"net/http"
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

// document is served with a strong ETag (section 2).
type document struct {
	body []byte
	etag string
}

func newDocument(body []byte) document {
	sum := sha256.Sum256(body)
	return document{body: body, etag: `"` + hex.EncodeToString(sum[:16]) + `"`}
}

func (d document) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("ETag", d.etag)
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Content-Type-Options", "nosniff")
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(d.body))
}
