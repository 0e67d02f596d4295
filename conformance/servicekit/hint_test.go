package servicekit

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/agentic-go/agentic/conformance"
)

func TestHint(t *testing.T) {
	for _, tt := range []struct {
		what, found string
		denied      bool
		want        string
	}{
		{"status", "unknown", true, "--header-from-env"},
		{whatLate, "3", false, "did not answer in time"},
		{"answer to the repeat", answer{lost: noAnswer}.code(), false, "did not answer in time"},
		{whatPosted, "400", false, "with the OpenAPI document. own"},
		{whatMade, "0", false, "committed"},
		{whatMade, "-1", false, "nobody else"},
		{whatMade, "2", false, "own"},
		{"status", "unknown", false, "own"},
	} {
		if got := hint(conformance.Expectation{What: tt.what, Found: tt.found}, tt.denied, "own"); !strings.Contains(got, tt.want) {
			t.Errorf("%s %s: %s", tt.what, tt.found, got)
		}
	}
	if got := unable(fmt.Errorf(restarting+"%w", errors.New("exit status 1"))); !strings.Contains(got, "by hand") {
		t.Error(got)
	}
	if got := unable(errors.New("another")); got != "" {
		t.Error(got)
	}
}
