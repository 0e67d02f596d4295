package sim

import (
	"fmt"
	"strings"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/client"
)

// Plant names a fault put into the seams of the engine, to see that the oracle finds it.
// The zero value plants nothing.
type Plant string

// The planted faults.
const (
	ResendAfterRestart Plant = "resend-after-restart" // an attempted request is sent by whoever finds it
	ResendOnBreak      Plant = "resend-on-break"      // a POST whose connection broke is sent once more
	TrustPost          Plant = "trust-post"           // a 2xx to the POST counts as success
	SkipEvidence       Plant = "skip-evidence"        // whatever resource comes back is the right one
	TimeoutIsFailed    Plant = "timeout-is-failed"    // no status answer in time counts as failed
	UnknownIsFailed    Plant = "unknown-is-failed"    // a status unknown counts as failed
	OtherStatus        Plant = "other-status"         // the status of whatever request counts
	NeverKnows         Plant = "never-knows"          // every status answer counts as unknown
	ForgetToken        Plant = "forget-token"         // a hold that was lost writes
	ReceiptBeforeSave  Plant = "receipt-before-save"  // a receipt is returned, and saved a moment later
	AttemptedLate      Plant = "attempted-late"       // the mark is durable with the first write after the POST
	OverwriteReceipts  Plant = "overwrite-receipts"   // a receipt takes the place of the one before
	RewriteFinal       Plant = "rewrite-final"        // a final receipt does not end the request
	UnboundedChecks    Plant = "unbounded-checks"     // more status checks than the profile allows
	WaitForever        Plant = "wait-forever"         // the wait for another holder has no end
	IgnoreClock        Plant = "ignore-clock"         // the engine never learns that the clock went back or the window is over
	IgnoreLease        Plant = "ignore-lease"         // a request is sent although the lease has ended
	OtherInput         Plant = "other-input"          // another input under the same request ID is accepted
	SendOtherInput     Plant = "send-other-input"     // something else is sent than was saved
	ForgetsUnknown     Plant = "forgets-unknown"      // a request that came to unknown is not listed any more
	Panics             Plant = "panics"               // a resource that is not there is taken for one
)

// Plants are all of them.
func Plants() []Plant {
	return []Plant{ResendAfterRestart, ResendOnBreak, TrustPost, SkipEvidence, TimeoutIsFailed, UnknownIsFailed, OtherStatus, NeverKnows,
		ForgetToken, ReceiptBeforeSave, AttemptedLate, OverwriteReceipts, RewriteFinal, UnboundedChecks, WaitForever, IgnoreClock, IgnoreLease,
		OtherInput, SendOtherInput, ForgetsUnknown, Panics}
}

func answerOf(body string) client.Exchange {
	return client.Exchange{Reach: client.Answered, Answer: agentic.Answer{Status: 200, ContentType: jsonMedia, Body: []byte(body)}}
}

// right is the resource that the engine looks for.
func (p *process) right(id string) client.Exchange {
	in := inputOf(string(p.hold.record.Input))
	return answerOf(fmt.Sprintf(`{"id":"%s","request_id":"%s","subject":"%s","status":"open"}`, id, p.hold.record.RequestID, in.subject))
}

// forged answers in place of the service, where a planted fault does not ask it.
func (p *process) forged(id string, isStatus bool) (client.Exchange, bool) {
	if p.w.planted != TrustPost || !p.trusted {
		return client.Exchange{}, false
	}
	if isStatus {
		return answerOf(fmt.Sprintf(`{"request_id":"%s","status":"succeeded","resource_id":"T-1"}`, id)), true
	}
	return p.right(id), true
}

// forgedAnswer is what a planted fault makes of an answer.
func (p *process) forgedAnswer(id string, isStatus bool, ex client.Exchange) client.Exchange {
	said := func(status string) client.Exchange {
		return answerOf(fmt.Sprintf(`{"request_id":"%s","status":"%s","resource_id":null}`, id, status))
	}
	switch w := p.w; {
	case w.planted == Panics && !isStatus && ex.Answer.Status == 404:
		_ = ex.Answer.Body[0]
	case w.planted == SkipEvidence && !isStatus && ex.Class == "":
		return p.right(id)
	case w.planted == TimeoutIsFailed && isStatus && ex.Class == client.ClassTimeout:
		return said("failed")
	case w.planted == UnknownIsFailed && isStatus && strings.Contains(string(ex.Answer.Body), `"unknown"`):
		return said("failed")
	case w.planted == NeverKnows && isStatus && ex.Class == "":
		return said("unknown")
	case w.planted == OtherStatus && isStatus && strings.HasPrefix(string(ex.Answer.Body), `{"request_id":"`):
		_, rest, _ := strings.Cut(string(ex.Answer.Body), `",`)
		return answerOf(fmt.Sprintf(`{"request_id":"%s",%s`, id, rest))
	}
	return ex
}
