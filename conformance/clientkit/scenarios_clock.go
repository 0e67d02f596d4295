package clientkit

import (
	"context"
	"time"

	"github.com/agentic-go/agentic"
)

// clockScenarios set the clock of the client's ledger.
func clockScenarios() []scenario {
	const group = "Time"
	const hour = time.Hour
	list := []scenario{
		{Info: must("clock/back", group, "the clock stands before the creation of the request: unknown, and no POST", "6.9",
			"A clock that moves backwards preserves unknown and requires the host's handoff."),
			run: clock(loud, agentic.Unknown, -hour)},
		{Info: reading("clock/back-silent", group, "the clock stands before the creation of the request: nothing is sent at all", "6.9 D16",
			"With a clock that cannot be right, no network call is made."),
			run: clock(quietly, agentic.Unknown, -hour)},
		{Info: reading("clock/back-from-highest", group, "the clock stands after the creation, but before a time that was seen: unknown", "6.9 D16",
			"The highest time seen is saved; a clock below it has moved backwards."),
			run: clock(loud, agentic.Unknown, 2*hour, hour)},
		{Info: must("clock/expired", group, "the tracking window is over: unknown, and no POST", "6.9",
			"A request whose saved window expired stays unknown, whatever its status says then."),
			run: clock(loud, agentic.Unknown, window+time.Second)},
		{Info: reading("clock/expired-silent", group, "the tracking window is over: nothing is sent at all", "6.9 D16",
			"After the window no network call is made."),
			run: clock(quietly, agentic.Unknown, window+time.Second)},
		{Info: reading("clock/window-end", group, "the tracking window ends at this moment: unknown", "6.9 D16",
			"An age at the window is past it."),
			run: clock(loud, agentic.Unknown, window)},
		{Info: must("clock/inside-window", group, "the tracking window is almost over: succeeded, by reading only", "6.9",
			"Inside the window a pending request can be resumed."),
			run: clock(loud, agentic.Succeeded, window-time.Second)},
	}
	for i := range list {
		list[i].feature = FeatureTestNow
		list[i].hint = "Save the creation time and the highest time seen with the request, and look at the clock before every check."
	}
	return list
}

// window is the one that the reference service advertises.
const window = 24 * time.Hour

// Whether the last call may ask the service.
const (
	loud    = false
	quietly = true
)

// clock makes the first call now with a pending status, and one for each later time, the
// last of them after the service has decided.
func clock(silent bool, want agentic.Outcome, later ...time.Duration) func(context.Context, *trial) error {
	return func(ctx context.Context, t *trial) error {
		if err := t.ticket(ctx, "normal"); err != nil {
			return err
		}
		decide := t.undecided()
		begin := time.Now().UTC().Truncate(time.Microsecond)
		for i, d := range append([]time.Duration{0}, later...) {
			a := t.ask()
			a.now = begin.Add(d)
			outcome := agentic.Pending
			if i == len(later) {
				decide()
				outcome = want
			}
			rep, err := t.call(ctx, a)
			if err != nil {
				return err
			}
			t.finished(rep, outcome)
			if silent && i == len(later) {
				t.silent(rep)
			}
		}
		return nil
	}
}
