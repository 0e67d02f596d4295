package client

// Point names a boundary between two effects of an execution, for tests that
// kill the process there.
type Point string

// The boundaries, in the order of section 6.
const (
	BeforeSave    Point = "before-save"    // nothing is durable
	BeforeSubmit  Point = "before-submit"  // attempted is durable, no byte was sent
	AfterSubmit   Point = "after-submit"   // the POST ended, nothing else was done with it
	AfterRefusal  Point = "after-refusal"  // a 409 or 422 is durable (D10)
	BeforeStatus  Point = "before-status"  // a status check is about to be made
	AfterStatus   Point = "after-status"   // its answer is in memory only
	BeforeVerify  Point = "before-verify"  // the resource is about to be read
	AfterVerify   Point = "after-verify"   // its answer is in memory only
	BeforeReceipt Point = "before-receipt" // the outcome is in memory only
	AfterReceipt  Point = "after-receipt"  // the receipt is durable, nobody was told
)

// Points are all boundaries, in order.
func Points() []Point {
	return []Point{BeforeSave, BeforeSubmit, AfterSubmit, AfterRefusal, BeforeStatus, AfterStatus,
		BeforeVerify, AfterVerify, BeforeReceipt, AfterReceipt}
}
