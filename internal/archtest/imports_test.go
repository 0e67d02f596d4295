package archtest

import (
	"go/ast"
	"path"
	"strings"
)

// ruleArrows: every import inside the module is written down in arrows.
func ruleArrows(t *tree, out *findings) {
	for _, pkg := range t.packages() {
		if _, ok := arrows[pkg]; !ok {
			out.add(pkg, "package has no line in the table of arrows")
		}
	}
	for _, f := range t.files {
		for p, spec := range f.imports {
			to, ok := local(p)
			switch {
			case !ok || to == f.pkg || in(arrows[f.pkg], to):
			case !f.test:
				out.at(spec.Pos(), "%s may not import %s: the arrow is not written down", f.pkg, to)
			case in(pure, f.pkg):
				out.at(spec.Pos(), "tests of the pure package %s may not import %s", f.pkg, to)
			case in(top, to) && !in(top, f.pkg):
				out.at(spec.Pos(), "tests of %s may not import %s, which wires parts together", f.pkg, to)
			}
		}
	}
}

// ruleLayers: the table of arrows has no cycle, and none of its lines names a
// package without one.
func ruleLayers(table map[string]string, out *findings) {
	const entered, done = 1, 2
	state := map[string]int{}
	var visit func(pkg string)
	visit = func(pkg string) {
		state[pkg] = entered
		for _, to := range strings.Fields(table[pkg]) {
			if _, ok := table[to]; !ok {
				out.add(pkg, "arrow to %s, which has no line in the table", to)
			}
			switch state[to] {
			case entered:
				out.add(pkg, "arrow to %s closes a cycle", to)
			case 0:
				visit(to)
			}
		}
		state[pkg] = done
	}
	for pkg := range table {
		if state[pkg] == 0 {
			visit(pkg)
		}
	}
}

// ruleStale: every line of the table of arrows is about a package that exists.
func ruleStale(t *tree, out *findings) {
	there := strings.Join(t.packages(), " ")
	for pkg := range arrows {
		if !in(there, pkg) {
			out.add(pkg, "has a line in the table of arrows and no code")
		}
	}
}

// ruleLibraries: libraries are imported where the table says, and a library of
// another module only if it has a line.
func ruleLibraries(t *tree, out *findings) {
	for _, f := range t.files {
		for p, spec := range f.imports {
			if _, ok := local(p); ok {
				continue
			}
			if spec.Name != nil && spec.Name.Name == "." {
				out.at(spec.Pos(), "dot import: names must show where they come from")
			}
			line, ok := longest(p)
			foreign := strings.Contains(strings.SplitN(p, "/", 2)[0], ".")
			switch {
			case !ok && foreign:
				out.at(spec.Pos(), "%s has no line in the table of libraries", p)
			case ok && !f.test && !in(restricted[line], f.pkg):
				out.at(spec.Pos(), "%s may not import %s", f.pkg, p)
			}
		}
	}
}

// longest is the line of restricted that an import path falls under.
func longest(importPath string) (line string, ok bool) {
	for p := importPath; p != "."; p = path.Dir(p) {
		if _, ok := restricted[p]; ok {
			return p, true
		}
	}
	return "", false
}

// ruleBans: production code does not use what bans names.
func ruleBans(t *tree, out *findings) {
	for f := range t.production {
		for _, b := range bans {
			if !in(b.in, f.pkg) || in(b.but, f.pkg) || in(b.but, f.path) {
				continue
			}
			f.uses(b.path, func(sel *ast.SelectorExpr) {
				if in(b.names, sel.Sel.Name) {
					out.at(sel.Pos(), "%s.%s in %s: %s", b.path, sel.Sel.Name, f.pkg, b.why)
				}
			})
		}
	}
}

// ruleGoroutines: a pure package starts none and has no channel.
func ruleGoroutines(t *tree, out *findings) {
	for f := range t.production {
		if !in(pure, f.pkg) {
			continue
		}
		ast.Inspect(f.File, func(n ast.Node) bool {
			switch n.(type) {
			case *ast.GoStmt:
				out.at(n.Pos(), "goroutine in the pure package %s", f.pkg)
			case *ast.ChanType:
				out.at(n.Pos(), "channel in the pure package %s", f.pkg)
			}
			return true
		})
	}
}
