package service

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"time"
)

// document is a published document, served to everybody (section 2).
type document struct {
	bytes []byte
	etag  string // strong: the digest of the bytes
}

func newDocument(b []byte) *document {
	sum := sha256.Sum256(b)
	return &document{bytes: bytes.Clone(b), etag: `"` + hex.EncodeToString(sum[:]) + `"`}
}

// ServeHTTP lets caches keep the document, and makes them ask each time whether it
// is still the same: a client binds its requests to the one it read.
func (d *document) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		methodNotAllowed("GET, HEAD").write(w)
		return
	}
	h := w.Header()
	h.Set("Content-Type", mediaJSON)
	h.Set("ETag", d.etag)
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Content-Type-Options", "nosniff")
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(d.bytes))
}

// NoStore keeps caches from the answers of a handler. It is for the publisher's
// verify operation; submit and status say it themselves.
func NoStore(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		h.ServeHTTP(w, r)
	})
}
