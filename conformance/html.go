package conformance

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
)

//go:embed report.css
var styleText string

//go:embed report.html.tmpl
var pageText string

// page is parsed when it is first needed: most commands of a program write no HTML.
var page = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("report").Parse(pageText))
})

// The page as its template has it: every string is escaped for a reader's eyes already
// (D6), and the template escapes it for HTML.
type (
	pageView struct {
		Policy, Heading, Subject, Statement, Summary string
		Style                                        template.CSS
		Facts                                        []fact
		Filters                                      []filter
		Groups                                       []groupView
	}
	fact   struct{ Name, Value string }
	filter struct {
		Status string
		Count  int
	}
	groupView struct {
		Name   string
		Checks []checkView
	}
	checkView struct {
		Status, Class, ID, Title, Asks, Missing, Reason string
		Open                                            bool
		Tries                                           []tryView
	}
	tryView struct {
		Name, Error, Hint string
		Open              bool
		Expectations      []expectationView
		Exchanges         []exchangeView
		Notes             []string
	}
	expectationView struct{ Class, Held, What, Expected, Found string }
	exchangeView    struct{ Name, Request, Response string }
)

// WriteHTML writes the report as one page that loads nothing and runs no script. Its
// policy says so to the browser. Everything from the subject is escaped (D6).
func (r *Report) WriteHTML(w io.Writer) error {
	v := pageView{
		Heading: r.heading(), Subject: visible(r.Subject.Name), Statement: visible(r.Statement), Summary: strings.TrimSpace(r.counts() + ". " + r.leftOut()),
		Facts: []fact{
			{"subject", r.Subject.words()}, {"draft", visible(r.Draft)}, {"tried by", r.Tool.words()}, {"format", visible(r.Format)},
			{"started", r.Started.UTC().Format(time.RFC3339)}, {"took", r.took()}, {"seed", fmt.Sprint(r.Seed)}, {"each check", times(r.Repeat)},
		},
	}
	style, hidden := styleText, ""
	for _, s := range []Status{Failed, Flaky, Unexpected, Broken, Expected, NotExercised, Passed} {
		n := 0
		for _, c := range r.Checks {
			if c.Status == s {
				n++
			}
		}
		if n > 0 {
			v.Filters = append(v.Filters, filter{string(s), n})
			style += fmt.Sprintf("body:has(#show-%s:not(:checked)) .is-%[1]s{display:none}\n", s)
			hidden += fmt.Sprintf("body:has(#show-%s:checked) section:has(.is-%[1]s){display:block}\n", s)
		}
	}
	// A heading without anything below it goes, where the browser can tell.
	style += "@supports selector(body:has(section)){section{display:none}\n" + hidden + "}\n"
	sum := sha256.Sum256([]byte(style))
	v.Policy = "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'"
	v.Style = template.CSS(style) // fixed text and known statuses alone
	groups := r.groups()
	for _, g := range groups {
		slices.SortStableFunc(g.Checks, func(a, b Result) int { return first(!a.Status.OK(), !b.Status.OK()) })
	}
	slices.SortStableFunc(groups, func(a, b group) int { return first(!a.Checks[0].Status.OK(), !b.Checks[0].Status.OK()) })
	for _, g := range groups {
		gv := groupView{Name: visible(g.Name)}
		for _, c := range g.Checks {
			gv.Checks = append(gv.Checks, c.view())
		}
		v.Groups = append(v.Groups, gv)
	}
	var b bytes.Buffer
	if err := page().Execute(&b, v); err != nil {
		return fmt.Errorf("cannot write HTML: %w", err)
	}
	_, err := w.Write(b.Bytes())
	return err
}

// first orders what is true before what is not.
func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

func class(good bool) string {
	if good {
		return "good"
	}
	return "bad"
}

func (c Result) view() checkView {
	v := checkView{
		Status: visible(string(c.Status)), Class: class(c.Status.OK()), ID: visible(c.ID), Title: quoted(c.Title), Asks: visible(c.asks()),
		Missing: block(c.Missing), Open: !c.Status.OK(),
	}
	switch c.Status {
	case Expected:
		v.Reason = "The baseline expects this failure: " + visible(c.Reason)
	case Unexpected:
		v.Reason = "The baseline expects a failure, and it passed: take it out of the baseline. Its reason was: " + visible(c.Reason)
	}
	open := !c.Status.OK()
	for i, t := range c.Tries {
		tv := tryView{
			Name:  fmt.Sprintf("try %d: %s, %s", i+1, visible(string(t.Status)), t.Duration.Round(time.Millisecond)),
			Error: block(t.Error), Hint: visible(t.Hint),
			Open: open && t.Status != Passed || len(c.Tries) == 1,
		}
		if open && t.Status != Passed {
			open = false // the first one tells most
		}
		rows := slices.Clone(t.Expectations) // what explains a failure comes first
		slices.SortStableFunc(rows, func(a, b Expectation) int { return first(!a.OK, !b.OK) })
		for _, e := range rows {
			held := "yes"
			if !e.OK {
				held = "NO"
			}
			tv.Expectations = append(tv.Expectations, expectationView{class(e.OK), held, visible(e.What), block(e.Expected), block(e.Found)})
		}
		for i, e := range t.Exchanges {
			name := fmt.Sprintf("Exchange %d", i+1)
			if e.Note != "" {
				name += ": " + visible(e.Note)
			}
			tv.Exchanges = append(tv.Exchanges, exchangeView{name, block(e.Request), block(e.answer())})
		}
		for _, n := range t.Notes {
			tv.Notes = append(tv.Notes, block(n))
		}
		v.Tries = append(v.Tries, tv)
	}
	return v
}

// block is a text with its lines.
func block(s string) string {
	if s == "" {
		return ""
	}
	return strings.Join(lines(s), "\n")
}
