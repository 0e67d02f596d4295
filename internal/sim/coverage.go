package sim

// What is counted over many runs, to see that the simulator does what it says.
const (
	cCrash = iota
	cPause
	cYield
	cCancel
	cClockAhead
	cClockBack
	cLedgerBefore
	cLedgerAfter
	cLedgerDown
	cHold
	cHeld
	cLost
	cSettled
	cPurged
	cNotSent
	cRequestLost
	cRequestLate
	cRequestTwice
	cMiddle
	cTimeout
	cAnswerLost
	cAnswerLate
	cAnswerDamaged
	cAnswerSwapped
	cStale
	cServiceError
	cServiceCrash
	cRefused
	cRepeat
	cPending
	cFailed
	cTicketChanged
	cBreach
	cForeign
	cSucceeded
	cFailedReceipt
	cPendingReceipt
	cUnknownReceipt
	cFromSaved
	cWindowEnded
	cErrBinding
	cErrDuplicate
	cErrNotFound
	cErrPrepared
	cErrExpired
	cErrSettled
	cErrPurged
	cErrInterrupted
	cErrLedger
	cKnown
	countKinds
)

var countNames = [countKinds]string{
	"process crashed", "process paused", "another host first", "caller gave up", "clock ahead", "clock back",
	"ledger failed before the effect", "ledger failed after the effect", "ledger down", "hold given", "held by another", "hold lost", "settled by a person", "purged",
	"request not sent", "request lost", "request late", "request delivered twice", "answered by an intermediary", "no answer in time",
	"answer lost", "answer late", "answer damaged", "earlier answer instead", "stale read", "service error", "service crashed",
	"submission refused", "submission repeated", "decision pending", "decision failed", "ticket changed", "service breaks a promise", "request ID used by somebody else",
	"receipt succeeded", "receipt failed", "receipt pending", "receipt unknown", "receipt from saved", "window ended",
	"error: other binding", "error: duplicate", "error: not found", "error: prepared", "error: expired", "error: settled", "error: purged", "error: interrupted", "error: ledger",
	"outcome checked against the service",
}

// counts are those of one worker.
type counts [countKinds]int64

func (c *counts) add(i int) { c[i]++ }
