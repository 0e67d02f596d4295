package archtest

import (
	"regexp"
	"strings"
)

// modfile is what "go mod edit -json" tells of go.mod.
type modfile struct {
	Require []struct {
		Path     string
		Indirect bool
	}
	Tool []struct{ Path string }
}

// direct lists the modules that this one imports from or takes a tool from.
func (m *modfile) direct() []string {
	var list []string
	for _, r := range m.Require {
		tool := false
		for _, t := range m.Tool {
			tool = tool || t.Path == r.Path || strings.HasPrefix(t.Path, r.Path+"/")
		}
		if tool || !r.Indirect {
			list = append(list, r.Path)
		}
	}
	return list
}

// ruleDependencies: docs/ARCHITECTURE.md has a line for each direct dependency.
func ruleDependencies(t *tree, m *modfile, out *findings) {
	const doc = "docs/ARCHITECTURE.md"
	text, ok := t.other[doc]
	if !ok {
		out.add(doc, "missing")
	}
	direct := m.direct()
	if len(direct) == 0 {
		out.add("go.mod", "no direct dependency found")
	}
	for _, p := range direct {
		named := regexp.MustCompile(`(?m)(^|[^\w./-])` + regexp.QuoteMeta(p) + `($|[^\w./-]|\.\s|\.$)`)
		if !named.MatchString(text) {
			out.add(doc, "does not say what %s is for", p)
		}
	}
}

var pureLine = regexp.MustCompile(`(?m)^PURE := (.*)$`)

// ruleMakefile: the Makefile spares from the race detector exactly the pure
// packages and this one.
func ruleMakefile(t *tree, out *findings) {
	line := pureLine.FindStringSubmatch(t.other["Makefile"])
	if line == nil {
		out.add("Makefile", "no list of pure packages")
		return
	}
	spared, err := regexp.Compile(`^(?:` + line[1] + `)$`)
	if err != nil {
		out.add("Makefile", "PURE: %v", err)
		return
	}
	for pkg := range arrows {
		want := in(pure, pkg) || pkg == "internal/archtest"
		if got := spared.MatchString(strings.TrimSuffix(module+"/"+pkg, "/.")); got != want {
			out.add("Makefile", "PURE has %s: %t, want %t", pkg, got, want)
		}
	}
}
