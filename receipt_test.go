package agentic

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func sampleReceipt() Receipt {
	id := "T-1"
	return Receipt{
		Agentic: Version, RequestID: "req-12345", ActionID: "create-ticket", Origin: "https://support.example",
		Outcome: Succeeded, ObservedAt: "2026-09-07T10:00:00.000000Z", ResourceID: &id, Reason: "Verified.",
		Evidence: &ReceiptEvidence{URL: "https://support.example/tickets/T-1", ResourceID: id, RequestID: "req-12345",
			State: "open", Matched: []Pair{{"/subject", "/subject"}}},
	}
}

func TestReceiptEncode(t *testing.T) {
	r := sampleReceipt()
	r.Reason = "<&> \"\\ \n\u2028 é"
	want := `{"agentic":"0.1.0-draft","request_id":"req-12345","action_id":"create-ticket","origin":"https://support.example",` +
		`"outcome":"succeeded","observed_at":"2026-09-07T10:00:00.000000Z","resource_id":"T-1","reason":"<&> \"\\ \n` + "\u2028" + ` é",` +
		`"evidence":{"url":"https://support.example/tickets/T-1","resource_id":"T-1","request_id":"req-12345","state":"open",` +
		`"matched":[{"inputPointer":"/subject","resourcePointer":"/subject"}]}}`
	if diff := cmp.Diff(want, string(r.Encode())); diff != "" {
		t.Errorf("encoded (-want +got):\n%s", diff)
	}
	r = Receipt{Agentic: Version, RequestID: "r", ActionID: "a", Origin: "o", Outcome: Pending, ObservedAt: "2026-09-07T10:00:00Z", Reason: "x"}
	want = `{"agentic":"0.1.0-draft","request_id":"r","action_id":"a","origin":"o","outcome":"pending","observed_at":"2026-09-07T10:00:00Z","resource_id":null,"reason":"x"}`
	if diff := cmp.Diff(want, string(r.Encode())); diff != "" {
		t.Errorf("encoded (-want +got):\n%s", diff)
	}
}

// A receipt has one form, wherever encoding/json meets it.
func TestReceiptMarshal(t *testing.T) {
	full, bare := sampleReceipt(), sampleReceipt()
	full.Reason = "<&> \u2028 \x1b \xff"
	bare.Outcome, bare.ResourceID, bare.Evidence = Unknown, nil, nil
	for _, r := range []Receipt{full, bare, {}} {
		want := string(r.Encode())
		for _, tt := range []struct {
			in   any
			want string
		}{
			{r, want},
			{&r, want},
			{[]Receipt{r}, "[" + want + "]"},
			{map[string]*Receipt{"receipt": &r}, `{"receipt":` + want + "}"},
			{struct{ R Receipt }{r}, `{"R":` + want + "}"},
		} {
			var b strings.Builder
			enc := json.NewEncoder(&b)
			enc.SetEscapeHTML(false)
			if err := enc.Encode(tt.in); err != nil || b.String() != tt.want+"\n" {
				t.Errorf("%T is encoded as %s (%v), want %s", tt.in, b.String(), err, tt.want)
			}
		}
	}
}

func TestReceiptRoundTrip(t *testing.T) {
	empty := ""
	for name, change := range map[string]func(*Receipt){
		"succeeded":               func(*Receipt) {},
		"failed":                  func(r *Receipt) { r.Outcome, r.ResourceID, r.Evidence = Failed, nil, nil },
		"pending with a resource": func(r *Receipt) { r.Outcome, r.Evidence = Pending, nil },
		"unknown, empty resource": func(r *Receipt) { r.Outcome, r.Evidence, r.ResourceID = Unknown, nil, &empty },
		"failed with evidence":    func(r *Receipt) { r.Outcome = Failed },
		"two pairs":               func(r *Receipt) { r.Evidence.Matched = append(r.Evidence.Matched, Pair{"/~0~1", "//"}) },
		"controls and wide runes": func(r *Receipt) { r.Reason = "\x00\x1b[2J\u0085\u202e😀\uFFFD" },
		"a long reason":           func(r *Receipt) { r.Reason = strings.Repeat("é", 100000) },
		"what FormatTime gives":   func(r *Receipt) { r.ObservedAt = FormatTime(time.Unix(1, 999).In(time.FixedZone("", 3600))) },
	} {
		t.Run(name, func(t *testing.T) {
			r := sampleReceipt()
			change(&r)
			if ds := r.Validate(); ds != nil {
				t.Fatalf("invalid: %v", ds)
			}
			line := r.Encode()
			got, ds := ParseReceipt(line)
			if ds != nil {
				t.Fatalf("not accepted: %v", ds)
			}
			if diff := cmp.Diff(r, *got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if strings.ContainsAny(string(line), "\n\r") {
				t.Error("more than one line")
			}
			var std Receipt // other consumers use encoding/json with the tags
			if err := json.Unmarshal(line, &std); err != nil || !cmp.Equal(r, std) {
				t.Errorf("encoding/json reads another receipt: %v", err)
			}
		})
	}
}

func TestReceiptValidate(t *testing.T) {
	empty := ""
	tests := []struct {
		name   string
		change func(*Receipt)
		want   []string // code and pointer
	}{
		{"zero", func(r *Receipt) { *r = Receipt{} }, []string{"receipt/wrong-value /agentic", "receipt/too-short /request_id", "receipt/too-short /action_id",
			"receipt/too-short /origin", "receipt/wrong-value /outcome", "receipt/wrong-form /observed_at", "receipt/too-short /reason"}},
		{"other version", func(r *Receipt) { r.Agentic = "0.1.0" }, []string{"receipt/wrong-value /agentic"}},
		{"succeeded without evidence", func(r *Receipt) { r.Evidence = nil }, []string{"receipt/missing-member "}},
		{"succeeded without resource", func(r *Receipt) { r.ResourceID = nil }, []string{"receipt/wrong-type /resource_id"}},
		{"succeeded with empty resource", func(r *Receipt) { r.ResourceID = &empty }, []string{"receipt/too-short /resource_id"}},
		{"nothing matched", func(r *Receipt) { r.Evidence.Matched = nil }, []string{"receipt/too-few /evidence/matched"}},
		{"bad pointers", func(r *Receipt) { r.Evidence.Matched = []Pair{{"", "/~"}} },
			[]string{"receipt/too-short /evidence/matched/0/inputPointer", "receipt/wrong-form /evidence/matched/0/resourcePointer"}},
		{"empty evidence of a failed one", func(r *Receipt) { r.Outcome, r.Evidence.State = Failed, "" }, []string{"receipt/too-short /evidence/state"}},
		{"not UTF-8", func(r *Receipt) { r.Reason, r.Evidence.State = "\xff", "\xed\xa0\x80" },
			[]string{"receipt/not-utf8 /reason", "receipt/not-utf8 /evidence/state"}},
		{"a year past 9999", func(r *Receipt) { r.ObservedAt = FormatTime(time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)) }, []string{"receipt/wrong-form /observed_at"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := sampleReceipt()
			tt.change(&r)
			var got []string
			for _, d := range r.Validate() {
				got = append(got, d.Code+" "+d.Pointer)
				if d.Line != 0 || d.Column != 0 {
					t.Errorf("a place in nothing: %v", d)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseReceiptPlaces(t *testing.T) {
	doc := "{\n  \"agentic\": \"0.1.0-draft\",\n  \"é\": 1, \"outcome\": \"done\",\n  \"evidence\": {\"matched\": [{\"inputPointer\": \"x\"}]}\n}"
	_, ds := ParseReceipt([]byte(doc))
	type place struct {
		Code, Pointer string
		Line, Column  int
	}
	var got []place
	for _, d := range ds {
		got = append(got, place{d.Code, d.Pointer, d.Line, d.Column})
		if d.Problem == "" || d.Remedy == "" || d.Document != "receipt" || d.Severity != SeverityError {
			t.Errorf("incomplete: %+v", d)
		}
	}
	want := []place{
		{"receipt/missing-member", "", 1, 1}, {"receipt/missing-member", "", 1, 1}, {"receipt/missing-member", "", 1, 1},
		{"receipt/missing-member", "", 1, 1}, {"receipt/missing-member", "", 1, 1}, {"receipt/missing-member", "", 1, 1},
		{"receipt/unknown-member", "/é", 3, 3},
		{"receipt/wrong-value", "/outcome", 3, 22},
		{"receipt/missing-member", "/evidence", 4, 15}, {"receipt/missing-member", "/evidence", 4, 15},
		{"receipt/missing-member", "/evidence", 4, 15}, {"receipt/missing-member", "/evidence", 4, 15},
		{"receipt/missing-member", "/evidence/matched/0", 4, 28},
		{"receipt/wrong-form", "/evidence/matched/0/inputPointer", 4, 45},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestParseReceiptNotStrict(t *testing.T) {
	good := string(sampleReceipt().Encode())
	for doc, code := range map[string]string{
		"":                                   "receipt/empty",
		good[:len(good)-1]:                   "receipt/not-json",
		good + "x":                           "receipt/trailing-data",
		"\uFEFF" + good:                      "receipt/not-json",
		good[:len(good)-1] + `,"reason":""}`: "receipt/duplicate-member",
		strings.Replace(good, "Verified", `\udc00`, 1): "receipt/not-utf8",
		"null": "receipt/wrong-type",
		"[]":   "receipt/wrong-type",
	} {
		r, ds := ParseReceipt([]byte(doc))
		if r != nil || len(ds) != 1 || ds[0].Code != code || ds[0].Line < 1 || ds[0].Remedy == "" {
			t.Errorf("%.60q: got %+v", doc, ds)
		}
	}
}
