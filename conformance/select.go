package conformance

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Select gives the checks that one of the patterns of path.Match names, by ID, by the
// part of the ID before its "/", or by group; all if there are no patterns. A malformed
// pattern, and one that names nothing, is an error: a check that silently is not made
// would look like one that passed.
func Select(checks []Info, patterns []string) ([]Info, error) {
	if len(patterns) == 0 {
		return checks, nil
	}
	used := make([]bool, len(patterns))
	var chosen []Info
	for _, c := range checks {
		kind, _, _ := strings.Cut(c.ID, "/")
		take := false
		for i, p := range patterns {
			for _, name := range []string{c.ID, kind, c.Group} {
				if ok, _ := path.Match(p, name); ok {
					used[i], take = true, true
				}
			}
		}
		if take {
			chosen = append(chosen, c)
		}
	}
	for i, p := range patterns {
		if _, err := path.Match(p, ""); err != nil {
			return nil, fmt.Errorf("the pattern %q: %w", p, err)
		}
		if !used[i] {
			return nil, fmt.Errorf("no check is named by %q", p)
		}
	}
	return slices.Clip(chosen), nil
}
