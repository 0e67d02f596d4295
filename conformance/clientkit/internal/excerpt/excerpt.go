// Package excerpt keeps and shows bounded parts of what a client says and sends.
//
// Not its job: escaping, which package conformance does where a report is shown. It
// imports net/http for headers.
package excerpt

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// Buffer keeps the beginning of what is written to it, or its end, and drops the rest.
type Buffer struct {
	Limit int
	End   bool

	mu   sync.Mutex
	kept []byte
	more bool
}

// Write never fails.
func (l *Buffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	drop := max(0, len(l.kept)+len(p)-l.Limit)
	l.more = l.more || drop > 0
	if !l.End {
		l.kept = append(l.kept, p[:len(p)-drop]...)
		return len(p), nil
	}
	old := min(drop, len(l.kept))
	l.kept = append(l.kept[:copy(l.kept, l.kept[old:])], p[drop-old:]...)
	return len(p), nil
}

// State is what was kept, and whether there was more.
func (l *Buffer) State() (kept []byte, more bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Clone(l.kept), l.more
}

// Bytes is what was kept.
func (l *Buffer) Bytes() []byte {
	kept, _ := l.State()
	return kept
}

// secret are headers whose values are not for a report.
var secret = []string{"Authorization", "Cookie", "Proxy-Authorization", "Set-Cookie"}

// Header is a header in lines, each after a line feed, without the values of credentials.
func Header(h http.Header) string {
	var b strings.Builder
	names := make([]string, 0, len(h))
	for name := range h {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		for _, value := range h[name] {
			if slices.Contains(secret, name) {
				value = "[redacted]"
			}
			b.WriteString("\n" + name + ": " + Begin([]byte(value)))
		}
	}
	return b.String()
}

// Begin is the beginning of a text, short enough for a note.
func Begin(text []byte) string {
	const most = 1000
	if len(text) > most {
		return string(text[:most]) + fmt.Sprintf("… (%d bytes)", len(text))
	}
	return string(bytes.TrimSpace(text))
}

// End is the end of a text, short enough for a note: there an error is told.
func End(text []byte) string {
	const most = 1000
	text = bytes.TrimSpace(text)
	if len(text) > most {
		return fmt.Sprintf("(%d bytes) …", len(text)) + string(text[len(text)-most:])
	}
	return string(text)
}
