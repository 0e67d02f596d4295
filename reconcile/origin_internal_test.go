package reconcile

import (
	"fmt"
	"testing"
	"time"

	"github.com/agentic-go/agentic/client"
)

func TestOriginsAreBounded(t *testing.T) {
	s := &origins{limits: Limits{}.withDefaults(), states: map[string]*origin{}}
	now := time.Now()
	busy, r := s.admit("https://busy.example", now)
	if r != nil {
		t.Fatal("refused")
	}
	for i := range 3 * maxOrigins {
		now = now.Add(time.Millisecond)
		a, r := s.admit(fmt.Sprintf("https://n%d.example", i), now)
		if r != nil {
			t.Fatalf("origin %d is refused", i)
		}
		s.ended(a, answers, now)
	}
	if n := len(s.states); n != maxOrigins {
		t.Errorf("%d origins are kept", n)
	}
	s.ended(busy, answers, now) // it is still there
	for i := range maxOrigins {
		if _, r := s.admit(fmt.Sprintf("https://m%d.example", i), now); r != nil {
			t.Fatalf("origin %d is refused", i)
		}
	}
	if _, r := s.admit("https://one-more.example", now); r == nil || !r.at.After(now) {
		t.Error("more origins are busy than the worker can keep")
	}
}

// Executions that began together and found the origin down count as one failure,
// one probe runs at a time, and any answer ends it.
func TestBackoff(t *testing.T) {
	s := &origins{limits: Limits{Rate: 1e6}.withDefaults(), states: map[string]*origin{}}
	now := time.Now()
	const name = "https://down.example"
	admit := func() (admission, *refusal) { return s.admit(name, now) }
	var began []admission
	for range 4 {
		a, r := admit()
		if r != nil {
			t.Fatal("refused")
		}
		began = append(began, a)
	}
	for i, a := range began {
		if c := s.ended(a, silent, now); (c != nil && c.down) != (i == 0) {
			t.Errorf("end %d: %+v", i, c)
		}
	}
	within := func(what string, got, want time.Duration) {
		t.Helper()
		if got < want*4/5-time.Microsecond || got > want*6/5+time.Microsecond {
			t.Errorf("%s: %v, want about %v", what, got, want)
		}
	}
	for i, want := range []int{1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300} {
		_, r := admit()
		if r == nil || !r.down {
			t.Fatalf("admitted after failure %d", i+1)
		}
		within(fmt.Sprint("failure ", i+1), r.at.Sub(now), time.Duration(want)*time.Second)
		now = r.at
		probe, r := admit()
		if r != nil {
			t.Fatalf("no probe after failure %d", i+1)
		}
		if _, r := admit(); r == nil || !r.down {
			t.Fatal("two probes at once")
		}
		s.ended(probe, silent, now)
	}
	now = now.Add(6 * time.Minute)
	probe, _ := admit()
	s.ended(probe, notAsked, now) // such as an execution that only closed a request
	if probe, r := admit(); r != nil {
		t.Error("a probe that asked nothing counts")
	} else if c := s.ended(probe, answers, now); c == nil || c.down {
		t.Errorf("an answer: %+v", c)
	}
	if st := s.states[name]; len(s.states) != 1 || st.failures != 0 || st.running != 0 {
		t.Errorf("%+v", st)
	}
}

func TestHealth(t *testing.T) {
	seen := func(status int, class client.ErrorClass) client.Observation {
		o := client.Observation{Reach: client.MaybeSent, Status: status, Class: class}
		if status != 0 {
			o.Reach = client.Answered
		}
		return o
	}
	for name, tt := range map[string]struct {
		list []client.Observation
		want health
	}{
		"nothing":            {nil, notAsked},
		"200":                {[]client.Observation{seen(200, "")}, answers},
		"404":                {[]client.Observation{seen(404, "")}, answers},
		"a redirect":         {[]client.Observation{seen(302, client.ClassRedirect)}, answers},
		"500":                {[]client.Observation{seen(500, "")}, silent},
		"429":                {[]client.Observation{seen(429, "")}, silent},
		"no connection":      {[]client.Observation{seen(0, client.ClassConnect)}, silent},
		"tls":                {[]client.Observation{seen(0, client.ClassTLS)}, silent},
		"one answer of two":  {[]client.Observation{seen(200, ""), seen(0, client.ClassTimeout)}, answers},
		"the second answers": {[]client.Observation{seen(503, ""), seen(200, "")}, answers},
		"canceled":           {[]client.Observation{seen(0, client.ClassCanceled)}, notAsked},
		"credential":         {[]client.Observation{seen(0, client.ClassCredential)}, notAsked},
	} {
		var h health
		for _, o := range tt.list {
			h.see(o)
		}
		if h != tt.want {
			t.Errorf("%s: %d, want %d", name, h, tt.want)
		}
	}
}
