// Package wiretest answers one question about a client: does it ever send a POST
// twice?
//
// Its job is a server on loopback, raw TCP under HTTP/1.1 (plain and TLS) and frame
// by frame under HTTP/2, that breaks the connection at every stage of one
// submission and counts the POSTs that arrive. Each Stage breaks once; whatever
// comes afterwards is answered in full, so that a POST sent again would be seen
// and would succeed. A stage runs on a fresh connection and on one that an earlier
// request left open, where most libraries send again.
//
// [RoundTripper] and [Submit] fail a test on a second POST; [Stages] and [Try] do
// the same without package testing.
//
// # What counts
//
// A POST counts as sent once its first byte has been read by the server, or in
// HTTP/2 its HEADERS: two of them are a failure, complete or not, over one
// connection or two, under one Idempotency-Key or two, and also when the second
// comes up to [Linger] after the client returned. That is stricter than "the first
// had a complete header": where the server stopped reading is nothing the client
// can know, as its bytes were on their way. An attempt of which the server read
// nothing does not count, so a client may dial again.
//
// It is also stricter than HTTP, which lets a client send again where the server
// says that it has not acted (REFUSED_STREAM, 408, 421, 425). [Stage].Permits has
// the section that does. The draft has a client submit at most once for a saved
// request ID (section 6.4), and does not make exceptions for what a server or
// something in between says.
//
// # What it proves, and what not
//
// A pass says that this client, in these versions, sent at most one POST in each
// of the stages that struck; a client that does not speak HTTP/2, say, passes
// those stages without having been tried, which [Result].Struck and the log of the
// test tell. It observes at the socket of a loopback server. So it cannot see what
// a proxy, a gateway or a service mesh behind the client sends again; a second
// POST later than Linger, from a queue, after a restart of the process or by a
// person; bytes that were lost with a connection that the server reset at once; or
// a POST to another origin. It says nothing of what a client makes of the answer.
//
// It imports golang.org/x/net/http2 for frames, and testing.
package wiretest
