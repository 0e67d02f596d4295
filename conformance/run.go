package conformance

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agentic-go/agentic"
)

// Case is one check of a kit.
type Case struct {
	Info

	// Run tries it once and tells r what it found. An error says that the kit itself
	// could not go on; the subject's faults are expectations that do not hold.
	Run func(ctx context.Context, r *Recorder) error
}

// Options says how cases are run. The zero value runs each once, one after the other.
type Options struct {
	Repeat   int           // each case so often; 0 is 1
	Parallel int           // so many cases at once; 0 is 1
	Seed     uint64        // for Recorder.Rand
	Timeout  time.Duration // of one try; 0 is one minute
	// GiveUp is after how many cases in a row that were Dead the rest is not run: each is
	// an error that says so. 0 is never.
	GiveUp int
	// Progress is called after each case, one call at a time.
	Progress func(done, total int, last Result)
}

// Recorder takes down what one try of a case finds. It is safe for concurrent use.
type Recorder struct {
	// Rand gives the same numbers for the same seed, ID and repeat, whatever other
	// cases are run. It is for one goroutine at a time.
	Rand *rand.Rand

	mu      sync.Mutex
	try     Try
	missing string
	answers answers
}

// answers is whether a subject answers at all, as one try or case found it.
type answers int

const (
	untold answers = iota // nothing was asked of it
	dead                  // everything that was asked of it ran into its time limit
	alive
)

// Bounds of what is kept of one try.
const (
	maxExchanges = 64
	maxText      = 4 << 10
	maxNotes     = 16
)

// Expect takes down one thing that has to hold, and gives ok back.
func (r *Recorder) Expect(what string, ok bool, expected, found string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.try.Expectations = append(r.try.Expectations, Expectation{what, ok, bound(expected), bound(found)})
	return ok
}

// Equal is Expect for two values that are shown as they are.
func Equal[T comparable](r *Recorder, what string, expected, found T) bool {
	return r.Expect(what, expected == found, fmt.Sprint(expected), fmt.Sprint(found))
}

// Exchange takes down what was sent and came back.
func (r *Recorder) Exchange(e Exchange) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.try.Exchanges) < maxExchanges {
		r.try.Exchanges = append(r.try.Exchanges, Exchange{bound(e.Request), bound(e.Response), bound(e.Note)})
	}
}

// Note takes down a line for people.
func (r *Recorder) Note(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.try.Notes) < maxNotes {
		r.try.Notes = append(r.try.Notes, bound(fmt.Sprintf(format, args...)))
	}
}

// Hint says where to look when the try has failed; the first one counts.
func (r *Recorder) Hint(hint string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.try.Hint == "" {
		r.try.Hint = bound(hint)
	}
}

// Failed is the first expectation that does not hold, and whether there is one.
func (r *Recorder) Failed() (first Expectation, failed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.IndexFunc(r.try.Expectations, func(e Expectation) bool { return !e.OK })
	if i < 0 {
		return Expectation{}, false
	}
	return r.try.Expectations[i], true
}

// NotExercised says that the case could not be tried: why, and what would show it. What
// was expected before and did not hold still fails.
func (r *Recorder) NotExercised(why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.missing = bound(why)
}

// Asked says how something that the try asked of the subject ended: late, because its time
// was over, or in any other way. See Options.GiveUp.
func (r *Recorder) Asked(late bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case !late:
		r.answers = alive
	case r.answers == untold:
		r.answers = dead
	}
}

// Run runs the cases and reports on the subject.
func Run(ctx context.Context, kind Kind, subject Subject, tool Tool, cases []Case, o Options) (*Report, error) {
	rep := &Report{
		Format: Format, Statement: Statement, Kind: kind, Subject: subject, Tool: tool, Draft: agentic.Version,
		Seed: o.Seed, Repeat: max(1, o.Repeat), Started: time.Now().UTC(), Checks: make([]Result, len(cases)),
	}
	if rep.Tool.Go == "" {
		rep.Tool.Go, rep.Tool.System = runtime.Version(), runtime.GOOS+"/"+runtime.GOARCH
	}
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex // of done, row and Progress
		done int
		row  int // cases that ended last, one after the other, and were dead
		next = make(chan int)
	)
	for range max(1, o.Parallel) {
		wg.Go(func() {
			for i := range next {
				mu.Lock()
				over := o.GiveUp > 0 && row >= o.GiveUp
				mu.Unlock()
				res, found := givenUp(cases[i], o.GiveUp), untold
				if !over {
					res, found = runCase(ctx, cases[i], rep.Repeat, o)
				}
				mu.Lock()
				rep.Checks[i] = res
				switch found {
				case dead:
					row++
				case alive:
					if row < o.GiveUp { // one that was begun before changes nothing
						row = 0
					}
				}
				done++
				if o.Progress != nil {
					o.Progress(done, len(cases), res)
				}
				mu.Unlock()
			}
		})
	}
	for i := range cases {
		if ctx.Err() != nil {
			break
		}
		next <- i
	}
	close(next)
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	rep.Finished = time.Now().UTC()
	rep.count()
	return rep, nil
}

// givenUp is the result of a case that is not run any more.
func givenUp(c Case, row int) Result {
	why := fmt.Sprintf("It was not tried: in %d checks in a row everything that was asked of the subject ran into its time limit. Run it again once it answers; a pattern of checks makes a run shorter.", row)
	return Result{Info: c.Info, Status: Broken, Tries: []Try{{Status: Broken, Error: why}}}
}

func runCase(ctx context.Context, c Case, repeat int, o Options) (res Result, found answers) {
	res = Result{Info: c.Info, Tries: []Try{}}
	for n := range repeat {
		if ctx.Err() != nil {
			break
		}
		r := &Recorder{Rand: rand.New(rand.NewPCG(o.Seed, idHash(c.ID)+uint64(n)))}
		begin := time.Now()
		err := attempt(ctx, c, r, o.Timeout)
		try, missing := r.end(err)
		try.Duration = time.Since(begin)
		if try.Status == NotExercised {
			res.Missing = missing
		}
		res.Tries = append(res.Tries, try)
		found = max(found, r.told())
	}
	res.Status = judge(res.Tries)
	if res.Status == NotExercised {
		res.Tries = []Try{}
	} else {
		res.Missing = ""
	}
	return res, found
}

func (r *Recorder) told() answers {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.answers
}

func idHash(id string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(id)) // it never fails
	return h.Sum64()
}

// end gives what was taken down, with its status. err is the kit's own.
func (r *Recorder) end(err error) (t Try, missing string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t = r.try
	if err != nil {
		t.Error = bound(err.Error())
	}
	switch {
	case slices.ContainsFunc(t.Expectations, func(e Expectation) bool { return !e.OK }):
		t.Status = Failed
	case err != nil:
		t.Status = Broken
	case r.missing != "":
		t.Status = NotExercised
	case len(t.Expectations) == 0:
		t.Status, t.Error = Broken, "the check expected nothing"
	default:
		t.Status = Passed
		t.Exchanges, t.Hint, t.Notes = nil, "", nil
	}
	return t, r.missing
}

// attempt runs a case within its time; a panic is the kit's error.
func attempt(ctx context.Context, c Case, r *Recorder, timeout time.Duration) (err error) {
	if timeout <= 0 {
		timeout = time.Minute
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the kit panicked: %v\n%s", p, debug.Stack())
		}
	}()
	return c.Run(ctx, r)
}

// judge makes one status of all tries: a failure counts before everything else, and a
// try that could not be made before those that passed.
func judge(tries []Try) Status {
	count := map[Status]int{}
	for _, t := range tries {
		count[t.Status]++
	}
	switch {
	case count[Failed] > 0 && count[Passed] > 0:
		return Flaky
	case count[Failed] > 0:
		return Failed
	case len(tries) == 0 || count[Broken] > 0:
		return Broken
	case count[NotExercised] > 0:
		return NotExercised
	}
	return Passed
}

// count makes the summary.
func (r *Report) count() {
	r.Summary = Summary{}
	for _, c := range r.Checks {
		switch c.Status {
		case Passed:
			r.Summary.Passed++
		case Failed:
			r.Summary.Failed++
		case Flaky:
			r.Summary.Flaky++
		case Expected:
			r.Summary.Expected++
		case Unexpected:
			r.Summary.Unexpected++
		case NotExercised:
			r.Summary.NotExercised++
			continue
		default:
			r.Summary.Errors++
			continue
		}
		r.Summary.ObservedChecks++
	}
}

// OK reports whether nothing in the report that is judged is a failure or an error.
func (r *Report) OK() bool {
	return !slices.ContainsFunc(r.Checks, func(c Result) bool { return r.judges(c.Level) && !c.Status.OK() })
}

// judges reports whether a failure of that level is one of the run.
func (r *Report) judges(l Level) bool {
	return r.Judged == "" || slices.Index(levels, l) <= slices.Index(levels, r.Judged)
}

// bound keeps text short enough for a report.
func bound(s string) string {
	if len(s) > maxText {
		s = s[:maxText] + "…"
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
