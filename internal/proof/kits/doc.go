// Package kits holds this project's own client and service against the conformance
// kits, as a stranger would: the command as it is built, over processes and sockets. It
// has tests only.
package kits
