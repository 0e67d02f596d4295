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
// resource read (the publisher has that endpoint), listening and its time limits
// (http.Server), and the database: a Store keeps the records. Packages sqlite and
// postgres have one each.
//
// It imports package agentic, internal/strictjson, internal/inputschema and
// net/http.
//
// The type parameter Tx is the publisher's transaction type, such as *sql.Tx or
// pgx.Tx. It is seen at construction, in handlers and in Complete and Fail only;
// what a mux gets are plain http.Handlers.
//
// # What becomes of a request
//
//	POST ─► Claim ─┬─ new ─► handler ─┬─ DoneWith ────► Done      201
//	               │                  ├─ PendingWith ─► Pending   202
//	               │                  ├─ RefusedWith ─► rolled back, then Refused   4xx
//	               │                  └─ error, panic ► rolled back   500 or 503
//	               └─ known ─┬─ same input ─► the first answer again, 200 for 201
//	                         ├─ other input ► 409
//	                         └─ Expired ────► 409
//
//	Pending ─► Complete ─► Done          Done, Refused, Pending
//	        └► Fail ─────► Refused         └─ past the window ─► Expired
//
// The status of Done is succeeded, of Refused failed, of Pending pending; it is
// unknown for everything else: a key that was never seen, one of another
// principal or action, one past its window, and one whose first request still
// runs. These answers are the same bytes (D24). There is no state "processing": a
// claim lives in its transaction only, and dies with it.
//
// A handler that refuses has its writes rolled back, so the record is made in a
// second transaction. If the process dies between the two, nothing is recorded
// and the status stays unknown. If another host takes the key between the two,
// what that one comes to stands and is the answer.
//
// # Answers
//
// A submission is answered with 201 and Location the first time, with 200 and
// "Idempotency-Replayed: true" and the same body when it is repeated, with 202 and
// Retry-After as long as it is pending. A refused one repeats its status and body.
// Everything else is an RFC 9457 problem document with a type of the constants
// Problem..., checked for in this order: method, principal, query, key, media type,
// size, JSON, object, and then what is recorded. All three operations are answered with
// "Cache-Control: no-store"; the publisher's read says so through NoStore.
//
// Concurrent repeats wait for the first one and get its outcome. Who waits longer
// than Config.MaxWait, or has a request deadline that ends, gets 503 with
// Retry-After.
package service
