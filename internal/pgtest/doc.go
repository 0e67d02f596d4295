// Package pgtest gives tests a PostgreSQL server: a throw-away cluster of the
// newest programs found in PATH or in the places of Debian, or, for tests that
// need only a database, the server that AGENTIC_TEST_POSTGRES names. Without
// either a test fails and says what to install; it is never skipped.
//
// A cluster runs as an unprivileged user, also when the tests run as root, and
// is reached through a Unix socket in a directory of mode 0700: nobody but that
// user and root can connect. It is durable as a real one (fsync is on). It ends
// with the test program, even one that is killed: a watchdog holds a pipe to it,
// and when that closes ends the server and removes its files.
//
// It imports pgx, and is for tests only.
package pgtest
