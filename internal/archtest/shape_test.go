package archtest

import (
	"go/ast"
	"go/build/constraint"
	"go/token"
	"path"
	"regexp"
	"strings"
)

// ruleInterfaces: an interface has few methods, and the package that declares it
// uses it: interfaces live with their consumer.
func ruleInterfaces(t *tree, out *findings) {
	named := map[string]*ast.InterfaceType{} // by package and name
	uses := map[string]int{}
	for f := range t.production {
		ast.Inspect(f.File, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.TypeSpec:
				if i, ok := n.Type.(*ast.InterfaceType); ok {
					named[f.pkg+" "+n.Name.Name] = i
				}
			case *ast.Ident:
				uses[f.pkg+" "+n.Name]++
			}
			return true
		})
	}
	for key, i := range named {
		pkg, name, _ := strings.Cut(key, " ")
		if n := methods(pkg, i, named, out); n > maxInterfaceMethods {
			out.at(i.Pos(), "interface %s has %d methods, over %d", name, n, maxInterfaceMethods)
		}
		if uses[key] < 2 {
			out.at(i.Pos(), "interface %s is not used where it is declared: move it to its consumer", name)
		}
	}
}

// methods counts an interface's methods, those of embedded interfaces too.
func methods(pkg string, i *ast.InterfaceType, named map[string]*ast.InterfaceType, out *findings) int {
	n := 0
	for _, field := range i.Methods.List {
		n += len(field.Names)
		if len(field.Names) > 0 {
			continue
		}
		switch e := field.Type.(type) {
		case *ast.Ident:
			if j, ok := named[pkg+" "+e.Name]; ok {
				n += methods(pkg, j, named, out)
			}
		case *ast.SelectorExpr:
			out.at(e.Pos(), "interface embeds %s of another package: write its methods out", e.Sel.Name)
		}
	}
	return n
}

var poorName = regexp.MustCompile(`^(utils?|commons?|helpers?|misc|shared|base)(_test)?(\.go)?$`)

// ruleSizes: files, packages and main stay small, and names say something.
func ruleSizes(t *tree, out *findings) {
	lines, code := map[string]int{}, map[string]int{}
	for _, f := range t.files {
		if f.lines > maxFileLines {
			out.add(f.path, "%d lines, over %d", f.lines, maxFileLines)
		}
		for part := range strings.SplitSeq(f.path, "/") {
			if poorName.MatchString(part) {
				out.add(f.path, "the name %q says nothing", part)
			}
		}
		if !f.test {
			lines[f.pkg] += f.lines
			code[f.pkg] += f.code
		}
	}
	for pkg, n := range lines {
		if n > maxPackageLines {
			out.add(pkg, "package has %d lines without tests, over %d", n, maxPackageLines)
		}
	}
	if n := code["cmd/agentic"]; n > maxMainLines {
		out.add("cmd/agentic", "%d lines of code, over %d: main only calls internal/cli", n, maxMainLines)
	}
}

// rulePackageDocs: every package says in a comment what it is for.
func rulePackageDocs(t *tree, out *findings) {
	said := map[string]bool{}
	for f := range t.production {
		said[f.pkg] = said[f.pkg] || f.Doc != nil
	}
	for pkg, ok := range said {
		if !ok {
			out.add(pkg, "package has no comment that says what it is for")
		}
	}
}

var (
	leftover = regexp.MustCompile(`\b(TODO|FIXME|XXX)\b`)
	// A testscript line that ends a script early: "skip" or "[condition] stop".
	scriptSkip = regexp.MustCompile(`^\s*(\[[^\]]*\]\s*)*(skip|stop)(\s|$)`)
)

// ruleWhole: nothing is left for later, and no test is left out.
func ruleWhole(t *tree, out *findings) {
	for _, f := range t.files {
		for _, group := range f.Comments {
			for _, c := range group.List {
				if word := leftover.FindString(c.Text); word != "" {
					out.at(c.Pos(), "%s in a comment", word)
				}
				if constraint.IsGoBuild(c.Text) {
					checkTags(c, out)
				}
			}
		}
		for p := range f.imports {
			if p == "testing" {
				checkSkips(f, out)
			}
		}
	}
	for p, text := range t.other {
		if path.Ext(p) != ".txt" && path.Ext(p) != ".txtar" {
			continue
		}
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, "-- ") {
				break // the script has ended; its files follow
			}
			if scriptSkip.MatchString(line) {
				out.add(p, "a skipped testscript: %q", strings.TrimSpace(line))
			}
		}
	}
}

func checkSkips(f *file, out *findings) {
	ast.Inspect(f.File, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		if sel, ok := call.Fun.(*ast.SelectorExpr); ok && in("Skip Skipf SkipNow Short", sel.Sel.Name) {
			if _, ok := sel.X.(*ast.Ident); ok {
				out.at(call.Pos(), "a test that may be skipped: %s", sel.Sel.Name)
			}
		}
		return true
	})
}

const platforms = "linux darwin windows freebsd netbsd openbsd dragonfly solaris illumos aix unix amd64 arm64 race cgo"

// checkTags refuses build tags that neither a platform nor the race detector
// sets: nobody would build or test such a file.
func checkTags(c *ast.Comment, out *findings) {
	x, err := constraint.Parse(c.Text)
	if err != nil {
		out.at(c.Pos(), "%v", err)
		return
	}
	x.Eval(func(tag string) bool {
		if !in(platforms, tag) {
			out.at(c.Pos(), "build tag %s, which nothing here sets", tag)
		}
		return true
	})
}

var decision = regexp.MustCompile(`\bD([1-9][0-9]?)\b`)

// ruleCitations: a decision that a comment cites is in docs/DECISIONS.md.
func ruleCitations(t *tree, out *findings) {
	const doc = "docs/DECISIONS.md"
	known := map[string]bool{}
	for _, d := range regexp.MustCompile(`(?m)^- \*\*(D[0-9]+)\*\* `).FindAllStringSubmatch(t.other[doc], -1) {
		known[d[1]] = true
	}
	if len(known) == 0 {
		out.add(doc, "no decision found")
	}
	cited := func(pos token.Pos, text string) {
		for _, d := range decision.FindAllString(text, -1) {
			if !known[d] {
				out.at(pos, "%s is not in %s", d, doc)
			}
		}
	}
	for _, f := range t.files {
		for _, group := range f.Comments {
			cited(group.Pos(), group.Text())
		}
	}
}
