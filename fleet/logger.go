package fleet

import (
	"context"
	"log/slog"
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
