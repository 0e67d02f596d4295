package fleet

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// namesAndNumbers passes on what River warns of, without any text but its own
// sentence and the names of queues and kinds: an error of the database may quote what
// is in it.
type namesAndNumbers struct{ next slog.Handler }

func (h namesAndNumbers) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelWarn && h.next.Enabled(ctx, l)
}

func (h namesAndNumbers) Handle(ctx context.Context, r slog.Record) error {
	clean := slog.NewRecord(r.Time, r.Level, "river: "+r.Message, r.PC)
	r.Attrs(func(a slog.Attr) bool {
		if named(a) {
			clean.AddAttrs(a)
		}
		return true
	})
	return h.next.Handle(ctx, clean)
}

func (h namesAndNumbers) WithAttrs(list []slog.Attr) slog.Handler {
	var clean []slog.Attr
	for _, a := range list {
		if named(a) {
			clean = append(clean, a)
		}
	}
	return namesAndNumbers{h.next.WithAttrs(clean)}
}

func (h namesAndNumbers) WithGroup(name string) slog.Handler {
	return namesAndNumbers{h.next.WithGroup(name)}
}

func named(a slog.Attr) bool {
	switch a.Value.Kind() {
	case slog.KindInt64, slog.KindUint64, slog.KindFloat64, slog.KindBool, slog.KindDuration:
		return true
	}
	return a.Key == "queue" || a.Key == "job_kind"
}

// repeatTime is how long a message that was said is not said again: River tries
// several times a second what it cannot do while the database is down.
const repeatTime = time.Minute

// maxSaid bounds what is remembered. River's sentences are far fewer.
const maxSaid = 1000

// seldom passes each message on once in repeatTime, whatever its attributes are.
type seldom struct {
	slog.Handler
	said *said
}

type said struct {
	mu sync.Mutex
	at map[string]time.Time
}

func newSeldom(next slog.Handler) seldom { return seldom{next, &said{at: map[string]time.Time{}}} }

func (h seldom) Handle(ctx context.Context, r slog.Record) error {
	if h.said.lately(r.Message, r.Time) {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

func (h seldom) WithAttrs(list []slog.Attr) slog.Handler {
	return seldom{h.Handler.WithAttrs(list), h.said}
}

func (h seldom) WithGroup(name string) slog.Handler {
	return seldom{h.Handler.WithGroup(name), h.said}
}

// lately reports whether a message was said a short time ago; if not, it is said now.
func (s *said) lately(message string, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at, ok := s.at[message]; ok && now.Sub(at) < repeatTime {
		return true
	}
	if len(s.at) == maxSaid {
		clear(s.at)
	}
	s.at[message] = now
	return false
}
