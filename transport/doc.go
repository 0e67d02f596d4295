// Package transport is the HTTP of an agent host: client.Transport over net/http.
//
// Its job is to keep what a profile may not decide: which origins and addresses
// are talked to, where credentials go, how large and how slow an answer may be
// (section 2, section 6.8, D15), and that a submission leaves at most once.
//
// Not its job: deciding anything from an answer, sending again, following a
// redirect, or reading the proxy settings of the environment. It logs nothing,
// and its errors name an origin and an address, never a path, a request ID, a
// header, a credential or text of the service. One thing it cannot prevent:
// net/http writes a line to the standard logger of package log when a service
// sends bytes that nobody asked for over an HTTP/1 connection, and quotes them. A
// program that keeps that logger on stderr may want to silence it.
//
// A submission has a connection of its own, an http.ClientConn, which has no
// retry loop: net/http's Transport would send a POST with an Idempotency-Key
// twice when a reused connection breaks, and HTTP/2 when a stream is refused.
// Reads go through a pool of idle connections, and net/http is kept from repeating
// them too, because the profile bounds how many arrive (section 3, recovery.maxChecks).
//
// It imports package agentic, package client, net/http and x/net/http/httpguts.
package transport
