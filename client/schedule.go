package client

import (
	"hash/fnv"
	"time"
)

// The spacing of status reads by workers grows with a request's age, between these.
const (
	firstSpacing = 5 * time.Second
	lastSpacing  = time.Hour
)

// NextCheck is when a worker reads the status of an open request next, after
// something happened to it at now: a quarter of its age later, 5 s at least and 1 h
// at most, moved by up to a fifth either way so that requests made together are not
// read together. It is never after the end of the window; at the end one last
// execution writes down that the window has ended, and ok is false from then on
// (section 6.9, D16).
func NextCheck(requestID string, created, now time.Time, window time.Duration) (at time.Time, ok bool) {
	ends := created.Add(window)
	if !now.Before(ends) {
		return time.Time{}, false
	}
	d := min(max(now.Sub(created)/4, firstSpacing), lastSpacing)
	h := fnv.New32a()
	_, _ = h.Write([]byte(requestID)) // a hash takes everything
	_, _ = h.Write([]byte(now.UTC().Format(time.RFC3339Nano)))
	d += d / 5 * time.Duration(int64(h.Sum32()%2001)-1000) / 1000
	if at = now.Add(d).Truncate(time.Microsecond); at.After(ends) {
		at = ends
	}
	return at, true
}

// AfterAttempt is when a worker looks at a request that a hold is executing since
// now, should the hold never end: after its term.
func AfterAttempt(now time.Time, term time.Duration) time.Time {
	return now.Add(max(term, firstSpacing)).Truncate(time.Microsecond)
}
