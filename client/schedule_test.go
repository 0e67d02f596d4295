package client_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/agentic-go/agentic/client"
)

var made = time.Date(2026, 3, 1, 12, 30, 15, 123456000, time.UTC)

// The spacing is a quarter of the age, from 5 s to 1 h, a fifth more or less.
func TestNextCheckSpacing(t *testing.T) {
	const window = 30 * 24 * time.Hour
	for _, tt := range []struct{ age, spacing time.Duration }{
		{-time.Hour, 5 * time.Second}, // a clock set back
		{0, 5 * time.Second},
		{20 * time.Second, 5 * time.Second},
		{time.Minute, 15 * time.Second},
		{time.Hour, 15 * time.Minute},
		{4 * time.Hour, time.Hour},
		{20 * 24 * time.Hour, time.Hour},
	} {
		seen := map[time.Duration]bool{}
		var sum time.Duration
		const n = 500
		for i := range n {
			now := made.Add(tt.age)
			at, ok := client.NextCheck(fmt.Sprintf("request-%04d", i), made, now, window)
			d := at.Sub(now)
			if fifth := tt.spacing / 5; !ok || d < tt.spacing-fifth-time.Microsecond || d > tt.spacing+fifth {
				t.Fatalf("at the age of %v the next check is after %v, want %v and a fifth more or less", tt.age, d, tt.spacing)
			}
			seen[d], sum = true, sum+d
		}
		if mean := sum / n; mean < tt.spacing*95/100 || mean > tt.spacing*105/100 || len(seen) < n/4 {
			t.Errorf("at the age of %v: mean %v, %d different of %d; want spread around %v", tt.age, mean, len(seen), n, tt.spacing)
		}
	}
}

func TestNextCheckAtTheEndOfTheWindow(t *testing.T) {
	const window = time.Minute
	ends := made.Add(window)
	for _, before := range []time.Duration{time.Microsecond, time.Second, 4 * time.Second} {
		if at, ok := client.NextCheck("request-1", made, ends.Add(-before), window); !ok || !at.Equal(ends) {
			t.Errorf("%v before the end: %v, %v; want the end", before, at, ok)
		}
	}
	for _, after := range []time.Duration{0, time.Microsecond, time.Hour} {
		if at, ok := client.NextCheck("request-1", made, ends.Add(after), window); ok || !at.IsZero() {
			t.Errorf("%v after the end: %v, %v; want none", after, at, ok)
		}
	}
	for _, window := range []time.Duration{0, -time.Hour} {
		if at, ok := client.NextCheck("request-1", made, made, window); ok || !at.IsZero() {
			t.Errorf("a window of %v: %v, %v; want none", window, at, ok)
		}
	}
}

// Whatever zone its times come in, every host computes the same.
func TestNextCheckIsDeterministic(t *testing.T) {
	now := made.Add(time.Hour)
	want, _ := client.NextCheck("request-1", made, now, 24*time.Hour)
	east := time.FixedZone("east", 9*3600)
	got, ok := client.NextCheck("request-1", made.In(east), now.In(east), 24*time.Hour)
	if !ok || !got.Equal(want) {
		t.Errorf("%v in another zone, want %v", got, want)
	}
	if other, _ := client.NextCheck("request-2", made, now, 24*time.Hour); other.Equal(want) {
		t.Errorf("another request is checked at the same time: %v", other)
	}
}

// From one check to the next time goes forward, spacing grows with age, and the
// last check is the end of the window.
func TestNextCheckChain(t *testing.T) {
	for _, window := range []time.Duration{time.Second, time.Minute, time.Hour, 24 * time.Hour, 30 * 24 * time.Hour} {
		now, n := made, 0
		for ; ; n++ {
			at, ok := client.NextCheck("request-1", made, now, window)
			if !ok {
				break
			}
			if !at.After(now) || n > 2000 {
				t.Fatalf("window %v, check %d: %v is not after %v", window, n, at, now)
			}
			now = at
		}
		if !now.Equal(made.Add(window)) {
			t.Errorf("window %v: the last check is %v after the start", window, now.Sub(made))
		}
		if limit := 60 + int(window/(48*time.Minute)); n > limit {
			t.Errorf("window %v: %d checks, want %d at most", window, n, limit)
		}
	}
}

func FuzzNextCheck(f *testing.F) {
	f.Add("request-1", int64(0), int64(0), int64(time.Hour))
	f.Add("", int64(1), int64(1e18), int64(1))
	f.Add("\xff\x00", int64(-1e18), int64(5), int64(1e18))
	f.Fuzz(func(t *testing.T, id string, created, now, window int64) {
		c, n, w := time.UnixMicro(created%4e15).UTC(), time.UnixMicro(now%4e15).UTC(), time.Duration(window).Truncate(time.Microsecond)
		at, ok := client.NextCheck(id, c, n, w)
		ends := c.Add(w)
		if ok != n.Before(ends) {
			t.Fatalf("ok = %v at %v with the end at %v", ok, n, ends)
		}
		if again, _ := client.NextCheck(id, c, n, w); !again.Equal(at) {
			t.Fatalf("%v, and then %v", at, again)
		}
		if !ok {
			if !at.IsZero() {
				t.Fatalf("no check, at %v", at)
			}
			return
		}
		spacing := min(max(n.Sub(c)/4, 5*time.Second), time.Hour)
		earliest := n.Add(spacing - spacing/5 - time.Microsecond)
		switch {
		case !at.After(n) || at.After(ends):
			t.Fatalf("%v is not after %v and by %v", at, n, ends)
		case at.After(n.Add(spacing + spacing/5)), at.Before(earliest) && !at.Equal(ends):
			t.Fatalf("%v later, want %v and a fifth more or less", at.Sub(n), spacing)
		case !at.Equal(at.Truncate(time.Microsecond)):
			t.Fatalf("%v has more than microseconds", at)
		}
	})
}

func TestAfterAttempt(t *testing.T) {
	for _, tt := range []struct{ term, want time.Duration }{
		{-time.Hour, 5 * time.Second}, {0, 5 * time.Second}, {5*time.Second - 1, 5 * time.Second}, {5 * time.Second, 5 * time.Second},
		{90 * time.Second, 90 * time.Second}, {time.Minute + 1999*time.Nanosecond, time.Minute + time.Microsecond},
	} {
		if got := client.AfterAttempt(made, tt.term).Sub(made); got != tt.want {
			t.Errorf("a term of %v: %v, want %v", tt.term, got, tt.want)
		}
	}
}
