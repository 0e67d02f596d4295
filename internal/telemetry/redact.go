package telemetry

import (
	"context"
	"log/slog"
	"net/url"
	"slices"
	"strings"

	"github.com/agentic-go/agentic/internal/escape"
)

// ownLog takes what the OpenTelemetry SDK logs about itself: the message and the
// error. The rest of a line may quote a variable with a credential.
type ownLog struct{ t *Telemetry }

// Enabled drops what the SDK calls information and debugging.
func (ownLog) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelInfo-1 }

func (l ownLog) Handle(_ context.Context, r slog.Record) error {
	text := ""
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "err" {
			text = a.Value.String()
		}
		return true
	})
	l.t.warn(r.Message, text)
	return nil
}

func (l ownLog) WithAttrs([]slog.Attr) slog.Handler { return l }
func (l ownLog) WithGroup(string) slog.Handler      { return l }

func (t *Telemetry) warn(message, text string) {
	t.log.Warn(t.safe(message), "error", t.safe(text))
}

const redacted = "[redacted]"

// safe bounds an exporter's text, which may quote a server's answer, and takes out
// what the environment says to keep.
func (t *Telemetry) safe(text string) string {
	for _, s := range t.secrets {
		text = strings.ReplaceAll(text, s, redacted)
	}
	return escape.Bounded(text, maxText)
}

// minSecret is the shortest part of a variable that is taken out of a text; shorter
// ones would take it apart.
const minSecret = 4

// secrets are the parts of the OTLP variables that may be credentials, the longest
// first: header values in every form in which they may be quoted, and of endpoints all
// but scheme and host.
func secrets(lookupEnv func(string) (string, bool)) []string {
	var all []string
	add := func(parts ...string) {
		for _, p := range parts {
			if len(p) >= minSecret && !slices.Contains(all, p) {
				all = append(all, p)
			}
		}
	}
	for _, signal := range []string{"", "TRACES_", "METRICS_", "LOGS_"} {
		headers, _ := lookupEnv("OTEL_EXPORTER_OTLP_" + signal + "HEADERS")
		add(headers)
		for pair := range strings.SplitSeq(headers, ",") {
			_, value, ok := strings.Cut(pair, "=")
			if !ok {
				value = pair
			}
			plain, _ := url.PathUnescape(value)
			for _, v := range []string{value, plain} {
				add(strings.TrimSpace(v))
				add(strings.Fields(v)...)
			}
		}
		endpoint, _ := lookupEnv("OTEL_EXPORTER_OTLP_" + signal + "ENDPOINT")
		u, err := url.Parse(endpoint)
		if err != nil || u.Host == "" {
			add(endpoint)
			continue
		}
		add(u.RawQuery, u.Fragment)
		for _, values := range u.Query() {
			add(values...)
		}
		if p := u.EscapedPath(); p != "/v1/traces" && p != "/v1/metrics" {
			add(p, u.Path)
		}
		if u.User != nil {
			password, _ := u.User.Password()
			add(u.User.String(), password, u.User.Username())
		}
	}
	slices.SortFunc(all, func(a, b string) int { return len(b) - len(a) })
	return all
}
