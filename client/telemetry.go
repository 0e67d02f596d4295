package client

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/agentic-go/agentic"
)

// Instrumentation is the scope of all spans and metrics of this package, and
// InstrumentationVersion the version of their names: it changes when one of them does.
//
// Spans: "agentic.execute" or "agentic.resume" for each call, with one child for each
// exchange: "agentic.submit", "agentic.status", "agentic.verify". The child's context
// goes to the Transport. No header is added to a request because of it: the profile
// says which a request carries, and a trace is no business of the publisher.
//
// Metrics, with the attributes that they are counted by:
//
//	agentic.executions             calls of Execute and Resume: agentic.origin, .action, .outcome, .sent, .from_saved, error.type
//	agentic.execution.duration     s, unless a saved final receipt was the answer: agentic.origin, .action, .outcome
//	agentic.submissions            POSTs: agentic.origin, .action
//	agentic.exchange.duration      s, of single exchanges: agentic.exchange, .result
//	agentic.duplicates.refused     requests: agentic.action
//	agentic.leases.lost            requests that another holder had taken over: agentic.where (LeasesLost)
//	agentic.requests.open          in the ledger: agentic.age, .state (ObserveOpen)
//	agentic.requests.needs_person  of those, for a person (ObserveOpen)
//
// A span has the digest of the request ID (agentic.request: RequestDigest), the action,
// the origin and what became of them. The ID itself is the key under which the service
// knows the request, and is in none of it; nor are the principal or the environment,
// which may name people, an input, a receipt, a reason, a resource ID or an error's
// text. Metrics have no digests of request IDs either.
const (
	Instrumentation        = "github.com/agentic-go/agentic/client"
	InstrumentationVersion = "0.1.0"
)

// The attributes. An error has the class of its kind as error.type, not its text.
const (
	keyRequest   = attribute.Key("agentic.request") // RequestDigest; spans only
	keyAction    = attribute.Key("agentic.action")
	keyOrigin    = attribute.Key("agentic.origin")
	keyOutcome   = attribute.Key("agentic.outcome") // of the receipt, or none
	keySent      = attribute.Key("agentic.sent")
	keyFromSaved = attribute.Key("agentic.from_saved")
	keyErrorType = attribute.Key("error.type")
	keyCheck     = attribute.Key("agentic.check") // which status check, from 1
	keyReach     = attribute.Key("agentic.reach")
	keyStatus    = attribute.Key("http.response.status_code")
	keyExchange  = attribute.Key("agentic.exchange")
	keyResult    = attribute.Key("agentic.result") // 2xx to 5xx, or an ErrorClass
	keyWhere     = attribute.Key("agentic.where")
)

// RequestDigest is how spans name a request: the first half of the SHA-256 of its ID, in
// hexadecimal. Who has the ID finds the spans, and not the other way round.
func RequestDigest(requestID string) string {
	sum := sha256.Sum256([]byte(requestID))
	return hex.EncodeToString(sum[:16])
}

// What stands for a value that is not there, or not one of those counted apart.
const (
	none  = "none"
	other = "other"
)

// telemetry has the instruments of one New. All are of the OpenTelemetry API and do
// nothing until the host's program sets providers.
type telemetry struct {
	tracer      trace.Tracer
	executions  metric.Int64Counter
	submissions metric.Int64Counter
	lost        metric.Int64Counter
	duplicates  metric.Int64Counter
	duration    metric.Float64Histogram
	exchanges   metric.Float64Histogram
}

func newTelemetry(tp trace.TracerProvider, mp metric.MeterProvider) (*telemetry, error) {
	if tp == nil {
		tp = otel.GetTracerProvider()
	}
	t := &telemetry{tracer: tp.Tracer(Instrumentation, trace.WithInstrumentationVersion(InstrumentationVersion))}
	m := meter(mp)
	var errs [6]error
	t.executions, errs[0] = m.Int64Counter("agentic.executions", metric.WithUnit("{execution}"),
		metric.WithDescription("Calls of Execute and Resume, by what they came to."))
	t.submissions, errs[1] = m.Int64Counter("agentic.submissions", metric.WithUnit("{submission}"),
		metric.WithDescription("POSTs of an action, whatever became of them; at most one for each request."))
	t.lost, errs[2] = leasesLost(m)
	t.duplicates, errs[3] = m.Int64Counter("agentic.duplicates.refused", metric.WithUnit("{request}"),
		metric.WithDescription("New requests refused because they look like an earlier one asked again."))
	t.duration, errs[4] = m.Float64Histogram("agentic.execution.duration", metric.WithUnit("s"),
		metric.WithDescription("How long executions took that had no saved final receipt."),
		metric.WithExplicitBucketBoundaries(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300))
	t.exchanges, errs[5] = m.Float64Histogram("agentic.exchange.duration", metric.WithUnit("s"),
		metric.WithDescription("How long single exchanges with a service took."),
		metric.WithExplicitBucketBoundaries(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30))
	if err := errors.Join(errs[:]...); err != nil {
		return nil, fmt.Errorf("client: Config.MeterProvider: %w", err)
	}
	return t, nil
}

func meter(mp metric.MeterProvider) metric.Meter {
	if mp == nil {
		mp = otel.GetMeterProvider()
	}
	return mp.Meter(Instrumentation, metric.WithInstrumentationVersion(InstrumentationVersion))
}

func leasesLost(m metric.Meter) (metric.Int64Counter, error) {
	return m.Int64Counter("agentic.leases.lost", metric.WithUnit("{lease}"),
		metric.WithDescription("Holds on a request that another holder had taken over, by where it was noticed."))
}

// LeasesLost is for ledgers that notice lost leases by themselves, on renewal too: the
// function counts them as where=ledger. What an execution runs into counts as the write
// that failed, also when its ledger has told of it: the sum of both is not the number of
// leases. A nil provider is the global one.
func LeasesLost(mp metric.MeterProvider) (func(n int), error) {
	c, err := leasesLost(meter(mp))
	if err != nil {
		return nil, fmt.Errorf("client: agentic.leases.lost: %w", err)
	}
	where := metric.WithAttributeSet(attribute.NewSet(keyWhere.String("ledger")))
	return func(n int) { c.Add(context.Background(), int64(max(0, n)), where) }, nil
}

// operation is one call of Execute or Resume as telemetry sees it.
type operation struct {
	t      *telemetry
	span   trace.Span
	start  time.Time
	origin string // and action: "" until the request is bound or loaded
	action string
}

func (t *telemetry) begin(ctx context.Context, name string) (context.Context, *operation) {
	ctx, span := t.tracer.Start(ctx, name)
	return ctx, &operation{t: t, span: span, start: time.Now()}
}

// names says what the operation is about, once that is more than a claim.
func (o *operation) names(requestID, action, origin string) {
	o.action, o.origin = action, origin
	if o.span.IsRecording() {
		o.span.SetAttributes(keyRequest.String(RequestDigest(requestID)), keyAction.String(clip(action)), keyOrigin.String(clip(origin)))
	}
}

func (o *operation) end(ctx context.Context, res Result, err error) {
	outcome := none
	if err == nil {
		outcome = string(res.Receipt.Outcome)
	}
	if o.span.IsRecording() {
		o.span.SetAttributes(keyOutcome.String(outcome), keySent.Bool(res.Sent), keyFromSaved.Bool(res.FromSaved))
		if err != nil {
			failed(o.span, errorType(err))
		}
	}
	o.span.End()
	if !o.t.executions.Enabled(ctx) && !o.t.duration.Enabled(ctx) {
		return
	}
	ctx = context.WithoutCancel(ctx)
	origin, action := counted.bound(o.origin, o.action)
	set := make([]attribute.KeyValue, 3, 6)
	set[0], set[1], set[2] = keyOrigin.String(origin), keyAction.String(action), keyOutcome.String(outcome)
	if !res.FromSaved {
		o.t.duration.Record(ctx, time.Since(o.start).Seconds(), metric.WithAttributeSet(attribute.NewSet(set...)))
	}
	set = append(set, keySent.Bool(res.Sent), keyFromSaved.Bool(res.FromSaved))
	if err != nil {
		set = append(set, keyErrorType.String(errorType(err)))
	}
	o.t.executions.Add(ctx, 1, metric.WithAttributeSet(attribute.NewSet(set...)))
}

// toService marks the spans of exchanges; it is made once.
var toService = []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindClient)}

// exchange begins the span of one exchange, or gives none when that of the execution
// is not recorded: then nothing is, and it costs nothing.
func (t *telemetry) exchange(ctx context.Context, kind ExchangeKind) (context.Context, trace.Span) {
	if !trace.SpanFromContext(ctx).IsRecording() {
		return ctx, nil
	}
	name := "agentic.verify"
	switch kind {
	case ExchangeSubmit:
		name = "agentic.submit"
	case ExchangeStatus:
		name = "agentic.status"
	}
	return t.tracer.Start(ctx, name, toService...)
}

// exchanged ends it and measures it. Check is the number of the status check that it belongs to; a
// submission has none.
func (t *telemetry) exchanged(ctx context.Context, span trace.Span, kind ExchangeKind, check int, took time.Duration, ex Exchange) {
	if span != nil {
		span.SetAttributes(keyReach.String(reachName(ex.Reach)))
		if check > 0 {
			span.SetAttributes(keyCheck.Int(check))
		}
		if ex.Answer.Status != 0 {
			span.SetAttributes(keyStatus.Int(ex.Answer.Status))
		}
		switch {
		case ex.Class != "":
			failed(span, className(ex.Class))
		case ex.Answer.Status >= 400:
			failed(span, strconv.Itoa(ex.Answer.Status))
		}
		span.End()
	}
	if !t.exchanges.Enabled(ctx) {
		return
	}
	t.exchanges.Record(context.WithoutCancel(ctx), took.Seconds(),
		metric.WithAttributeSet(attribute.NewSet(keyExchange.String(string(kind)), keyResult.String(resultName(ex)))))
}

// submitted counts a POST.
func (t *telemetry) submitted(ctx context.Context, origin, action string) {
	if t.submissions.Enabled(ctx) {
		origin, action = counted.bound(origin, action)
		t.submissions.Add(context.WithoutCancel(ctx), 1,
			metric.WithAttributeSet(attribute.NewSet(keyOrigin.String(origin), keyAction.String(action))))
	}
}

// refused counts err if it says that a new request is a duplicate.
func (t *telemetry) refused(ctx context.Context, origin, action string, err error) {
	if is[*DuplicateError](err) && t.duplicates.Enabled(ctx) {
		_, action = counted.bound(origin, action)
		t.duplicates.Add(context.WithoutCancel(ctx), 1, metric.WithAttributeSet(attribute.NewSet(keyAction.String(action))))
	}
}

// noticed counts err if it says that the hold was lost.
func (t *telemetry) noticed(ctx context.Context, where string, err error) {
	if errors.Is(err, ErrLost) && t.lost.Enabled(ctx) {
		t.lost.Add(context.WithoutCancel(ctx), 1, metric.WithAttributeSet(attribute.NewSet(keyWhere.String(where))))
	}
}

func failed(span trace.Span, class string) {
	span.SetAttributes(keyErrorType.String(class))
	span.SetStatus(codes.Error, class)
}

// errorType is the class of an error of Execute or Resume.
func errorType(err error) string {
	switch {
	case errors.Is(err, ErrLost):
		return "lost"
	case errors.Is(err, ErrLedger):
		return "ledger"
	case is[*InterruptedError](err), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return "interrupted"
	case is[*HeldError](err):
		return "held"
	case is[*DuplicateError](err):
		return "duplicate"
	case is[*BindingError](err):
		return "binding"
	case is[*NotFoundError](err):
		return "not-found"
	case is[*PreparedError](err):
		return "prepared"
	case is[*SettledError](err):
		return "settled"
	case is[*PurgedError](err):
		return "purged"
	case is[*RequestIDError](err):
		return "request-id"
	case is[*OriginError](err):
		return "origin"
	case is[*agentic.InputError](err):
		return "input"
	}
	return other
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// A Transport may be anybody's, so what it says is one of the words of this package
// or none.

func className(c ErrorClass) string {
	switch c {
	case ClassAddress, ClassConnect, ClassTLS, ClassTimeout, ClassBroken, ClassRedirect, ClassTooLarge, ClassEncoded,
		ClassProtocol, ClassCredential, ClassCanceled:
		return string(c)
	}
	return other
}

func reachName(r Reach) string {
	switch r {
	case NotSent, MaybeSent, Answered:
		return string(r)
	}
	return other
}

func resultName(ex Exchange) string {
	switch s := ex.Answer.Status; {
	case ex.Class != "":
		return className(ex.Class)
	case s >= 100 && s < 600:
		return string(rune('0'+s/100)) + "xx"
	}
	return other
}

// clip bounds a name: a profile allows none that is longer.
func clip(s string) string {
	const limit = 256
	if len(s) > limit {
		s = strings.ToValidUTF8(s[:limit], "")
	}
	return s
}

// pairs bounds how many actions are counted apart. Their names come from publishers,
// and what keeps metrics never forgets a combination.
type pairs struct {
	mu   sync.RWMutex
	seen map[[2]string]struct{}
}

// maxPairs is how many pairs of origin and action one process counts apart. All
// others count as "other".
const maxPairs = 200

// counted is the process's, because its metrics are, however many clients it has.
var counted pairs

func (p *pairs) bound(origin, action string) (string, string) {
	if origin == "" {
		return none, none
	}
	key := [2]string{clip(origin), clip(action)}
	p.mu.RLock()
	_, ok := p.seen[key]
	full := len(p.seen) >= maxPairs
	p.mu.RUnlock()
	if !ok && !full {
		p.mu.Lock()
		if full = len(p.seen) >= maxPairs; !full {
			if p.seen == nil {
				p.seen = make(map[[2]string]struct{})
			}
			p.seen[key] = struct{}{}
			ok = true
		}
		p.mu.Unlock()
	}
	if !ok {
		return other, other
	}
	return key[0], key[1]
}
