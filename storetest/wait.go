package storetest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/google/go-cmp/cmp"
)

// patience bounds every wait that must come to an end, and brief is how long the
// suite looks at a wait that must not.
const (
	patience = 20 * time.Second
	brief    = 50 * time.Millisecond
)

// wholeBytes compares long documents in one step; an empty one is EquateEmpty's.
var wholeBytes = cmp.FilterValues(func(a, b []byte) bool { return len(a)+len(b) > 0 }, cmp.Comparer(bytes.Equal))

func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}
