package story

import (
	"strings"
	"testing"
)

// A title that leaves something out says so, in valid UTF-8.
func TestTitlesTellWhatIsLeftOut(t *testing.T) {
	for id, want := range map[string]string{"abcd": `"abcd"`, "abcde": `"abcd"…`, "ééé": `"éé"…`, "aéé": `"aé"…`, `a"b`: `"a\"b"`} {
		if got := quoted(id, 4); got != want {
			t.Errorf("%q: %s, want %s", id, got, want)
		}
	}
	for _, s := range identifiers() {
		if len(s.ResourceID) > 60 && !strings.Contains(s.Title, "…") {
			t.Errorf("%s: %s", s.ID, s.Title)
		}
	}
}
