// Package service is for publishers: it makes one endpoint of a Go API conform
// to section 5 of the Agentic Action Profile, inside the publisher's own
// database transaction.
//
// Its job is atomic tracking. The publisher's write and the record that ties
// request ID, principal, action, input and result together commit in one
// transaction; a repeat gets the original outcome, other input is refused,
// nothing is forgotten inside the advertised window, and after it nothing is
// claimed. It also serves the status operation and the published documents.
//
// Not its job: authentication (the publisher's principal function does it), the
// resource read (the publisher has that endpoint), listening, and the database:
// a Store keeps the records. Packages sqlite and postgres have one each.
//
// It imports package agentic, internal/strictjson, internal/inputschema and
// net/http.
//
// The type parameter Tx is the publisher's transaction type, such as *sql.Tx or
// pgx.Tx. It is seen at construction and in handlers only; what a mux gets are
// plain http.Handlers.
package service
