package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	noopmetric "go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	nooptrace "go.opentelemetry.io/otel/trace/noop"

	"github.com/agentic-go/agentic/client"
)

// recorder has every span and metric of the clients that it is given to.
type recorder struct {
	t       *testing.T
	spans   *tracetest.InMemoryExporter
	tracer  *sdktrace.TracerProvider
	metrics *sdkmetric.ManualReader
	meter   *sdkmetric.MeterProvider
}

func newRecorder(t *testing.T) *recorder {
	r := &recorder{t: t, spans: tracetest.NewInMemoryExporter(), metrics: sdkmetric.NewManualReader()}
	r.tracer = sdktrace.NewTracerProvider(sdktrace.WithSyncer(r.spans))
	r.meter = sdkmetric.NewMeterProvider(sdkmetric.WithReader(r.metrics))
	return r
}

func (r *recorder) config(cfg *client.Config) {
	cfg.TracerProvider, cfg.MeterProvider = r.tracer, r.meter
}

// tree is the spans as lines, children below their parent in the order in which
// they began.
func (r *recorder) tree() []string {
	stubs := r.spans.GetSpans()
	slices.SortStableFunc(stubs, func(a, b tracetest.SpanStub) int { return a.StartTime.Compare(b.StartTime) })
	var lines []string
	var below func(parent trace.SpanID, indent string)
	below = func(parent trace.SpanID, indent string) {
		for _, s := range stubs {
			if s.Parent.SpanID() != parent {
				continue
			}
			line := indent + s.Name + attributes(attribute.NewSet(s.Attributes...))
			if s.Status.Description != "" {
				line += " " + s.Status.Code.String() + ":" + s.Status.Description
			}
			if len(s.Events)+len(s.Links) > 0 {
				line += " with events"
			}
			lines = append(lines, line)
			below(s.SpanContext.SpanID(), indent+"  ")
		}
	}
	below(trace.SpanID{}, "")
	return lines
}

func attributes(set attribute.Set) string {
	var b strings.Builder
	for _, kv := range set.ToSlice() {
		name := strings.NewReplacer("agentic.", "", "http.response.status_code", "http").Replace(string(kv.Key))
		fmt.Fprintf(&b, " %s=%s", name, kv.Value.String())
	}
	return b.String()
}

func (r *recorder) collect() metricdata.ResourceMetrics {
	r.t.Helper()
	var rm metricdata.ResourceMetrics
	if err := r.metrics.Collect(r.t.Context(), &rm); err != nil {
		r.t.Fatal(err)
	}
	return rm
}

// counts is the metrics as lines: sums, gauges, and how often a duration was recorded.
func (r *recorder) counts() []string {
	var lines []string
	for _, scope := range r.collect().ScopeMetrics {
		if scope.Scope.Name != client.Instrumentation || scope.Scope.Version != client.InstrumentationVersion {
			r.t.Errorf("scope %v", scope.Scope)
		}
		for _, m := range scope.Metrics {
			name := strings.TrimPrefix(m.Name, "agentic.")
			switch d := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range d.DataPoints {
					lines = append(lines, fmt.Sprintf("%s%s: %d", name, attributes(p.Attributes), p.Value))
				}
			case metricdata.Gauge[int64]:
				for _, p := range d.DataPoints {
					lines = append(lines, fmt.Sprintf("%s%s: %d", name, attributes(p.Attributes), p.Value))
				}
			case metricdata.Histogram[float64]:
				for _, p := range d.DataPoints {
					lines = append(lines, fmt.Sprintf("%s%s: %d", name, attributes(p.Attributes), p.Count))
				}
			default:
				r.t.Errorf("%s is a %T", m.Name, d)
			}
		}
	}
	slices.Sort(lines)
	return lines
}

// about is how the spans name the action of the example, and which is of the metrics.
const (
	about = " action=create-ticket"
	which = " action=create-ticket origin=https://support.example"
)

func root(name, outcome, sent, fromSaved, class string) string {
	line := "agentic." + name + about + " from_saved=" + fromSaved + " origin=https://support.example outcome=" + outcome +
		" request=" + client.RequestDigest(testID) + " sent=" + sent
	if class != "" {
		line += " error.type=" + class + " Error:" + class
	}
	return line
}

const (
	submit201 = "  agentic.submit reach=answered http=201"
	status200 = "  agentic.status check=1 reach=answered http=200"
	verify200 = "  agentic.verify check=1 reach=answered http=200"
)

func TestSpans(t *testing.T) {
	ann := client.Scope{Principal: "ann", Environment: "test"}
	for _, tt := range []struct {
		name    string
		service func(s *service)
		act     func(t *testing.T, h *host, c *client.Client, s *service)
		want    []string
		counts  []string // beside the executions and durations
	}{
		{"success", nil, nil,
			[]string{root("execute", "succeeded", "true", "false", ""), submit201, status200, verify200},
			[]string{"submissions" + which + ": 1"}},
		{"lost answer", func(s *service) { s.submit = broken(client.ClassBroken) }, nil,
			[]string{root("execute", "succeeded", "true", "false", ""),
				"  agentic.submit reach=maybe-sent error.type=broken Error:broken", status200, verify200},
			[]string{"submissions" + which + ": 1"}},
		{"refused and pending", func(s *service) {
			s.submit = answer(422, `{}`)
			s.status = []client.Exchange{answer(503, ``), status("pending", "")}
		}, nil,
			[]string{root("execute", "pending", "true", "false", ""), "  agentic.submit reach=answered error.type=422 http=422 Error:422",
				"  agentic.status check=1 reach=answered error.type=503 http=503 Error:503",
				"  agentic.status check=2 reach=answered http=200", "  agentic.status check=3 reach=answered http=200"},
			[]string{"submissions" + which + ": 1"}},
		{"another's words", func(s *service) {
			s.submit = client.Exchange{Reach: "secret", Class: "secret", Err: errors.New("secret")}
		}, nil,
			[]string{root("execute", "succeeded", "true", "false", ""),
				"  agentic.submit reach=other error.type=other Error:other", status200, verify200},
			[]string{"submissions" + which + ": 1"}},
		{"cancelled", nil, func(t *testing.T, _ *host, c *client.Client, s *service) {
			ctx, cancel := context.WithCancel(t.Context())
			s.onSubmit = cancel
			_, _ = c.Execute(ctx, client.Request{Plan: plan(t), Input: []byte(testInput), ID: testID})
		},
			[]string{root("execute", "none", "true", "false", "interrupted"), submit201},
			[]string{"submissions" + which + ": 1"}},
		{"lease lost", nil, func(t *testing.T, h *host, c *client.Client, s *service) {
			s.onGet = func(int) { h.ledger.TakeOver(ann, testID) }
			_, _ = c.Execute(t.Context(), client.Request{Plan: plan(t), Input: []byte(testInput), ID: testID})
		},
			[]string{root("execute", "none", "true", "false", "lost"), submit201, status200, verify200},
			[]string{"leases.lost where=finish: 1", "submissions" + which + ": 1"}},
		{"lease lost before sending", nil, func(t *testing.T, h *host, _ *client.Client, s *service) {
			r := newRecorder(t)
			c := h.client(s, r.config, func(cfg *client.Config) {
				cfg.KillPoint = func(p client.Point) {
					if p == client.BeforeSubmit {
						h.ledger.TakeOver(ann, testID)
					}
				}
			})
			_, _ = c.Execute(t.Context(), client.Request{Plan: plan(t), Input: []byte(testInput), ID: testID})
			if d := cmp.Diff([]string{root("execute", "none", "false", "false", "lost")}, r.tree()); d != "" {
				t.Errorf("spans (-want +got):\n%s", d)
			}
			if !slices.Contains(r.counts(), "leases.lost where=submit: 1") {
				t.Errorf("metrics %q", r.counts())
			}
		}, nil, nil},
		{"saved, resumed", nil, func(t *testing.T, _ *host, c *client.Client, s *service) {
			_, _ = c.Execute(t.Context(), client.Request{Plan: plan(t), Input: []byte(testInput), ID: testID})
			_, _ = c.Resume(t.Context(), testID)
		},
			[]string{root("execute", "succeeded", "true", "false", ""), submit201, status200, verify200,
				root("resume", "succeeded", "false", "true", "")},
			[]string{"submissions" + which + ": 1"}},
		{"duplicate", func(s *service) { s.status = []client.Exchange{status("pending", "")} },
			func(t *testing.T, _ *host, c *client.Client, s *service) {
				_, _ = c.Prepare(t.Context(), client.Request{Plan: plan(t), Input: []byte(testInput), ID: "request-0000"})
				_, _ = c.Prepare(t.Context(), client.Request{Plan: plan(t), Input: []byte(testInput), ID: testID})
				_, _ = c.Execute(t.Context(), client.Request{Plan: plan(t), Input: []byte(testInput), ID: testID})
			},
			[]string{root("execute", "none", "false", "false", "duplicate")},
			[]string{"duplicates.refused" + about + ": 2"}},
		{"nothing is known", nil, func(t *testing.T, _ *host, c *client.Client, s *service) {
			_, _ = c.Resume(t.Context(), testID)
			_, _ = c.Resume(t.Context(), "no\nID")
			_, _ = c.Execute(t.Context(), client.Request{Plan: plan(t), Input: []byte(`[]`)})
			_, _ = c.Execute(t.Context(), client.Request{})
			s.approve = &client.OriginError{Origin: "https://support.example", Reason: "secret"}
			_, _ = c.Execute(t.Context(), client.Request{Plan: plan(t), Input: []byte(testInput)})
		},
			[]string{
				"agentic.resume from_saved=false outcome=none sent=false error.type=not-found Error:not-found",
				"agentic.resume from_saved=false outcome=none sent=false error.type=request-id Error:request-id",
				"agentic.execute from_saved=false outcome=none sent=false error.type=input Error:input",
				"agentic.execute from_saved=false outcome=none sent=false error.type=other Error:other",
				"agentic.execute from_saved=false outcome=none sent=false error.type=origin Error:origin",
			}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h, s, r := newHost(t), good(), newRecorder(t)
			if tt.service != nil {
				tt.service(s)
			}
			if tt.act == nil {
				tt.act = func(_ *testing.T, h *host, _ *client.Client, s *service) { h.execute(s, r.config) }
			}
			tt.act(t, h, h.client(s, r.config), s)
			if d := cmp.Diff(tt.want, r.tree()); d != "" {
				t.Errorf("spans (-want +got):\n%s", d)
			}
			counts := slices.DeleteFunc(r.counts(), func(s string) bool {
				return strings.HasPrefix(s, "executions ") || strings.Contains(s, ".duration ")
			})
			if d := cmp.Diff(tt.counts, counts); len(tt.counts)+len(counts) > 0 && d != "" {
				t.Errorf("metrics (-want +got):\n%s", d)
			}
		})
	}
}

func TestMetrics(t *testing.T) {
	h, s, r := newHost(t), good(), newRecorder(t)
	s.submit, s.status = answer(500, ``), []client.Exchange{broken(client.ClassTimeout), status("succeeded", "t-1")}
	c := h.client(s, r.config)
	for range 2 {
		if _, err := c.Execute(t.Context(), client.Request{Plan: plan(t), Input: []byte(testInput), ID: testID}); err != nil {
			t.Fatal(err)
		}
	}
	other, err := c.In(client.Scope{Principal: "bob"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Resume(t.Context(), testID); err == nil {
		t.Error("another principal's request is found")
	}
	want := []string{
		"exchange.duration exchange=status result=2xx: 1",
		"exchange.duration exchange=status result=timeout: 1",
		"exchange.duration exchange=submit result=5xx: 1",
		"exchange.duration exchange=verify result=2xx: 1",
		"execution.duration action=create-ticket origin=https://support.example outcome=succeeded: 1",
		"execution.duration action=none origin=none outcome=none: 1",
		"executions action=create-ticket from_saved=false origin=https://support.example outcome=succeeded sent=true: 1",
		"executions action=create-ticket from_saved=true origin=https://support.example outcome=succeeded sent=false: 1",
		"executions action=none from_saved=false origin=none outcome=none sent=false error.type=not-found: 1",
		"submissions action=create-ticket origin=https://support.example: 1",
	}
	if d := cmp.Diff(want, r.counts()); d != "" {
		t.Errorf("metrics (-want +got):\n%s", d)
	}
}

// traced is a Transport that sees which span it is called in.
type traced struct {
	*service
	in []trace.SpanID
}

func (s *traced) Submit(ctx context.Context, sub client.Submission) client.Exchange {
	s.in = append(s.in, trace.SpanContextFromContext(ctx).SpanID())
	return s.service.Submit(ctx, sub)
}

func (s *traced) Get(ctx context.Context, r client.Read) client.Exchange {
	s.in = append(s.in, trace.SpanContextFromContext(ctx).SpanID())
	return s.service.Get(ctx, r)
}

func TestSpansReachTheTransportAndHaveTheCallersParent(t *testing.T) {
	h, r, s := newHost(t), newRecorder(t), &traced{service: good()}
	c := h.client(s.service, r.config, func(cfg *client.Config) { cfg.Transport = s })
	ctx, parent := r.tracer.Tracer("test").Start(t.Context(), "agent")
	if _, err := c.Execute(ctx, client.Request{Plan: plan(t), Input: []byte(testInput), ID: testID}); err != nil {
		t.Fatal(err)
	}
	parent.End()
	byID := map[trace.SpanID]string{}
	for _, stub := range r.spans.GetSpans() {
		if byID[stub.SpanContext.SpanID()] = stub.Name; stub.SpanContext.TraceID() != parent.SpanContext().TraceID() {
			t.Errorf("%s is in another trace", stub.Name)
		}
		if want := trace.SpanKindClient; strings.HasPrefix(stub.Name, "agentic.") && (stub.SpanKind == want) != (stub.Name != "agentic.execute") {
			t.Errorf("%s is of kind %v", stub.Name, stub.SpanKind)
		}
	}
	var names []string
	for _, id := range s.in {
		names = append(names, byID[id])
	}
	if d := cmp.Diff([]string{"agentic.submit", "agentic.status", "agentic.verify"}, names); d != "" {
		t.Errorf("spans of the transport's calls (-want +got):\n%s", d)
	}
	if tree := r.tree(); len(tree) != 5 || tree[0] != "agent" || !strings.HasPrefix(tree[1], "  agentic.execute") {
		t.Errorf("spans %q", tree)
	}
}

// Without providers it is the global ones, also when the program sets them later.
func TestGlobalProviders(t *testing.T) {
	h, r := newHost(t), newRecorder(t)
	s := good()
	c := h.client(s)
	otel.SetTracerProvider(r.tracer)
	otel.SetMeterProvider(r.meter)
	defer otel.SetTracerProvider(nooptrace.NewTracerProvider())
	defer otel.SetMeterProvider(noopmetric.NewMeterProvider())
	if _, err := c.Execute(t.Context(), client.Request{Plan: plan(t), Input: []byte(testInput), ID: testID}); err != nil {
		t.Fatal(err)
	}
	if len(r.tree()) != 4 || len(r.counts()) == 0 {
		t.Errorf("spans %q, metrics %q", r.tree(), r.counts())
	}
}

// Whatever becomes of a request, nothing that is confidential or that somebody else
// wrote freely is in any span or metric.
func TestNothingConfidentialIsRecorded(t *testing.T) {
	const mark = "s3cr3t"
	input := `{"subject":"` + mark + `-input"}`
	r := newRecorder(t)
	for name, change := range map[string]func(s *service){
		"succeeded": func(s *service) {},
		"failed": func(s *service) {
			s.status = []client.Exchange{answer(200, fmt.Sprintf(`{"request_id":%q,"status":"failed","resource_id":null,"reason":"%s-reason"}`, testID, mark))}
		},
		"mismatch": func(s *service) { s.resource = []client.Exchange{ticket(mark+"-other", mark+"-state")} },
		"broken": func(s *service) {
			s.submit = client.Exchange{Reach: client.NotSent, Class: client.ClassCredential, Err: errors.New(mark + "-credential")}
			s.status = []client.Exchange{{Reach: client.MaybeSent, Class: client.ClassBroken, Err: errors.New(mark + "-network")}}
		},
		"damaged": func(s *service) { s.status = []client.Exchange{answer(200, mark)} },
		"refused": func(s *service) { s.approve = &client.OriginError{Origin: mark, Reason: mark} },
	} {
		h, s := newHost(t), good()
		s.status = []client.Exchange{status("succeeded", mark+"-resource")}
		s.resource = []client.Exchange{answer(200, fmt.Sprintf(`{"id":"%s-resource","request_id":%q,"subject":"%s-input","status":"open"}`, mark, testID, mark))}
		change(s)
		c := h.client(s, r.config, func(cfg *client.Config) {
			cfg.Scope = client.Scope{Principal: mark + "-ann", Environment: mark + "-env"}
		})
		res, err := c.Execute(t.Context(), client.Request{Plan: plan(t), Input: []byte(input), ID: testID})
		if (name == "succeeded") != (res.Receipt.Outcome == "succeeded") || (name == "refused") != (err != nil) {
			t.Errorf("%s: %+v, %v", name, res, err)
		}
		_, _ = c.Resume(t.Context(), testID)
		_, _ = c.Execute(t.Context(), client.Request{Plan: plan(t), Input: []byte(input), ID: mark + "-id\n"})
		_, _ = c.Execute(t.Context(), client.Request{Plan: plan(t), Input: []byte(`{"subject":"` + mark + `"`)})
	}
	spans, err := json.Marshal(r.spans.GetSpans())
	if err != nil {
		t.Fatal(err)
	}
	metrics, err := json.Marshal(r.collect())
	if err != nil {
		t.Fatal(err)
	}
	for what, text := range map[string]string{"spans": string(spans), "metrics": string(metrics)} {
		if strings.Contains(text, mark) {
			t.Errorf("%s: %.200s", what, text[strings.Index(text, mark):])
		}
		if !strings.Contains(text, "create-ticket") { // this does look at what was recorded
			t.Errorf("%s: no action in %.200s", what, text)
		}
	}
	if strings.Contains(string(metrics)+string(spans), testID) {
		t.Error("the request ID, which is the service's key, is in a span or metric")
	}
	if digest := client.RequestDigest(testID); strings.Contains(string(metrics), digest) || !strings.Contains(string(spans), digest) {
		t.Error("the digest of the request ID belongs to spans, and to no metric")
	}
}

// Each instrument is in the documentation of Instrumentation and in the guide.
func TestMetricsAreDocumented(t *testing.T) {
	var source string
	for _, file := range []string{"telemetry.go", "observeopen.go", "../docs/hosts.md"} {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		source += string(b)
	}
	names := regexp.MustCompile(`m\.(?:Int64|Float64)[A-Za-z]+\("(agentic[a-z._]+)"`).FindAllStringSubmatch(source, -1)
	if len(names) < 8 {
		t.Fatalf("found only %q", names)
	}
	for _, m := range names {
		if !strings.Contains(source, "//\t"+m[1]+" ") || !strings.Contains(source, "| `"+m[1]+"` |") {
			t.Errorf("%s is not documented", m[1])
		}
	}
}
