package agentcall

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/agentic-go/agentic"
)

// maxToolName is what the hosts of agents take at most.
const maxToolName = 64

// The tools that are there beside the actions.
const (
	toolPrepare  = "prepare_request"
	toolSubmit   = "submit_request"
	toolList     = "list_requests"
	toolShow     = "show_request"
	toolResume   = "resume_request"
	toolValidate = "validate_profile"
	toolSpec     = "read_spec"
)

var fixedNames = []string{toolPrepare, toolSubmit, toolList, toolShow, toolResume, toolValidate, toolSpec}

// toolNames gives each plan the ID of its action as a name. Those that two would
// have, or that is a fixed one, get the host in front of it, and a number if that is
// not enough. Letters that differ in case only count as the same.
func toolNames(plans []*agentic.Plan) []string {
	wanted := map[string]int{}
	taken := map[string]bool{}
	for _, name := range fixedNames {
		taken[name] = true
	}
	for _, p := range plans {
		wanted[strings.ToLower(p.Action.ID)]++
	}
	names := make([]string, len(plans))
	for i, p := range plans {
		id := p.Action.ID
		if wanted[strings.ToLower(id)] == 1 && !taken[strings.ToLower(id)] {
			names[i] = id
			taken[strings.ToLower(id)] = true
		}
	}
	for i, p := range plans {
		if names[i] != "" {
			continue
		}
		base := cut(hostName(p.Origin)+"_"+p.Action.ID, maxToolName)
		name := base
		for n := 2; taken[strings.ToLower(name)]; n++ {
			end := "_" + strconv.Itoa(n)
			name = cut(base, maxToolName-len(end)) + end
		}
		names[i] = name
		taken[strings.ToLower(name)] = true
	}
	return names
}

// hostName is host and port of an origin in the letters of a tool name, at most half
// of one. It begins with a letter, as some hosts want it.
func hostName(origin string) string {
	host := origin
	if u, err := url.Parse(origin); err == nil {
		host = u.Host
	}
	legal := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-':
			return r
		}
		return '_'
	}, host)
	legal = strings.Trim(legal, "_-")
	if legal == "" || legal[0] <= '9' { // a digit
		legal = "at_" + legal
	}
	return cut(legal, maxToolName/2)
}

// cut is for ASCII.
func cut(s string, limit int) string {
	if len(s) > limit {
		return s[:limit]
	}
	return s
}
