package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// report is the result of a run, also as JSON.
type report struct {
	Versions map[string]string `json:"versions"`
	Settings map[string]string `json:"settings"`
	Results  []result          `json:"results"`
	Actions  map[string]int    `json:"actions"` // verified, by side, warming up included
	Posts    int64             `json:"posts"`   // that the service counted
}

// result is one number of callers.
type result struct {
	Callers int       `json:"callers"`
	Sides   []sideSum `json:"sides"`
	Ratios  []ratio   `json:"ratios"`
}

// sideSum is what one side did in all rounds. Rates are verified actions a second.
type sideSum struct {
	Name         string    `json:"name"`
	Rates        []float64 `json:"rates"`
	Median       float64   `json:"median"`
	P50          float64   `json:"p50_ms"`
	P99          float64   `json:"p99_ms"`
	WALPerAction float64   `json:"wal_bytes_per_action"`
}

// ratio compares two sides, round by round.
type ratio struct {
	Of     string    `json:"of"`
	To     string    `json:"to"`
	Rounds []float64 `json:"rounds"`
	Median float64   `json:"median"`
}

// sum puts the slices of one side together.
func sum(name string, all []*slice) sideSum {
	s := sideSum{Name: name}
	var latencies []time.Duration
	var wal int64
	for _, r := range all {
		s.Rates = append(s.Rates, r.rate())
		latencies = append(latencies, r.latencies...)
		wal += r.wal
	}
	slices.Sort(latencies)
	s.Median = median(s.Rates)
	if n := len(latencies); n > 0 {
		s.P50, s.P99 = ms(latencies[n/2]), ms(latencies[n*99/100])
		s.WALPerAction = float64(wal) / float64(n)
	}
	return s
}

func compare(a, b sideSum) ratio {
	r := ratio{Of: a.Name, To: b.Name}
	for i := range a.Rates {
		r.Rounds = append(r.Rounds, a.Rates[i]/b.Rates[i])
	}
	r.Median = median(r.Rounds)
	return r
}

func median(of []float64) float64 {
	s := slices.Sorted(slices.Values(of))
	switch n := len(s); {
	case n == 0:
		return 0
	case n%2 == 1:
		return s[n/2]
	default:
		return (s[n/2-1] + s[n/2]) / 2
	}
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func (r *report) print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "callers\tside\tactions/s\tlowest\thighest\tp50 ms\tp99 ms\tWAL bytes/action\t")
	for _, res := range r.Results {
		for _, s := range res.Sides {
			fmt.Fprintf(t, "%d\t%s\t%.0f\t%.0f\t%.0f\t%.1f\t%.1f\t%.0f\t\n",
				res.Callers, s.Name, s.Median, slices.Min(s.Rates), slices.Max(s.Rates), s.P50, s.P99, s.WALPerAction)
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w)
	for _, res := range r.Results {
		for _, q := range res.Ratios {
			rounds := make([]string, len(q.Rounds))
			for i, v := range q.Rounds {
				rounds[i] = fmt.Sprintf("%.2f", v)
			}
			fmt.Fprintf(w, "%d callers: %s is %.2f times %s (rounds: %s)\n", res.Callers, q.Of, q.Median, q.To, strings.Join(rounds, " "))
		}
	}
	_, err := fmt.Fprintf(w, "\nEvery action was verified, and is in its database: %v. The service counted %d POSTs, none twice.\n", r.Actions, r.Posts)
	return err
}
