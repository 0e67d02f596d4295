package archtest

import (
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
)

const specMap = "docs/SPEC-MAP.md"

// A reference of docs/SPEC-MAP.md: `file.go: Identifier`, `file.go: Type.Member`,
// or `package: Test` with the cases below it after slashes.
var reference = regexp.MustCompile("`([^`\\s:]+): ([^`]+)`")

// mapRow is a row of a table: its cells, and the line it is in.
type mapRow struct {
	line  int
	cells []string
}

// mapRows are the rows of all tables, without their heads.
func mapRows(text string) (rows []mapRow) {
	line := 0
	for s := range strings.Lines(text) {
		line++
		inner, ok := strings.CutPrefix(strings.TrimSpace(s), "| ")
		inner, closed := strings.CutSuffix(inner, " |")
		switch {
		case !ok || !closed:
		case strings.HasPrefix(inner, "---"):
			rows = rows[:max(0, len(rows)-1)]
		default:
			rows = append(rows, mapRow{line, strings.Split(inner, " | ")})
		}
	}
	return rows
}

// ruleSpecMap: docs/SPEC-MAP.md names only files, identifiers, tests and cases
// that are there; every row names a place in the code and a test, or begins with
// "none"; no section from 2 to 7 and no decision is left out.
func ruleSpecMap(t *tree, out *findings) {
	text, ok := t.other[specMap]
	if !ok {
		out.add(specMap, "missing")
		return
	}
	line := 0
	for s := range strings.Lines(text) {
		line++
		where := specMap + ":" + strconv.Itoa(line)
		for _, m := range reference.FindAllStringSubmatch(s, -1) {
			switch place, name := m[1], m[2]; {
			case strings.HasSuffix(place, ".go"):
				checkIdentifier(t, out, where, place, name)
			default:
				checkTest(t, out, where, place, name)
			}
		}
	}
	want := decisions(t)
	for _, section := range []string{"2", "3", "4", "5", "6", "7"} {
		want["§"+section] = true
	}
	for _, r := range mapRows(text) {
		where := specMap + ":" + strconv.Itoa(r.line)
		switch len(r.cells) {
		case 6:
			section, _, _ := strings.Cut(r.cells[0], ".")
			delete(want, "§"+section)
			if !regexp.MustCompile(`^(publisher|service|client|host)(, (publisher|service|client|host))*$`).MatchString(r.cells[3]) {
				out.add(where, "%q is nobody whose requirement it could be", r.cells[3])
			}
			if !in("MUST SHOULD MAY binds", strings.TrimSuffix(r.cells[1], " NOT")) {
				out.add(where, "%q is no keyword", r.cells[1])
			}
		case 4:
			if !want[r.cells[0]] {
				out.add(where, "%q is no decision, or is here twice", r.cells[0])
			}
			delete(want, r.cells[0])
		default:
			out.add(where, "a row of %d cells", len(r.cells))
			continue
		}
		for i, suffix := range []string{".go", ""} {
			cell := r.cells[len(r.cells)-2+i]
			named := false
			for _, m := range reference.FindAllStringSubmatch(cell, -1) {
				named = named || strings.HasSuffix(m[1], ".go") == (suffix == ".go")
			}
			if !named && !strings.HasPrefix(cell, "none") {
				out.add(where, "the cell %q names no %s", cell, []string{"place in the code", "test"}[i])
			}
		}
	}
	for what := range want {
		out.add(specMap, "%s has no row", what)
	}
}

// decisions are the numbers of docs/DECISIONS.md.
func decisions(t *tree) map[string]bool {
	known := map[string]bool{}
	for _, d := range regexp.MustCompile(`(?m)^- \*\*(D[0-9]+)\*\* `).FindAllStringSubmatch(t.other["docs/DECISIONS.md"], -1) {
		known[d[1]] = true
	}
	return known
}

func checkIdentifier(t *tree, out *findings, where, place, name string) {
	i := slices.IndexFunc(t.files, func(f *file) bool { return f.path == place })
	switch {
	case i < 0:
		out.add(where, "there is no file %s", place)
	case t.files[i].test:
		out.add(where, "%s is a test and no place in the code", place)
	case !declared(t.files[i].File)[name]:
		out.add(where, "%s declares no %s", place, name)
	}
}

// declared are the names that a file declares at its top, and the methods and
// fields of its types as Type.Name.
func declared(f *ast.File) map[string]bool {
	names := map[string]bool{}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			name := d.Name.Name
			if d.Recv != nil {
				t := d.Recv.List[0].Type
				if star, ok := t.(*ast.StarExpr); ok {
					t = star.X
				}
				if index, ok := t.(*ast.IndexExpr); ok {
					t = index.X
				}
				if id, ok := t.(*ast.Ident); ok {
					name = id.Name + "." + name
				}
			}
			names[name] = true
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.ValueSpec:
					for _, id := range s.Names {
						names[id.Name] = true
					}
				case *ast.TypeSpec:
					names[s.Name.Name] = true
					var members *ast.FieldList
					switch x := s.Type.(type) {
					case *ast.StructType:
						members = x.Fields
					case *ast.InterfaceType:
						members = x.Methods
					default:
						continue
					}
					for _, field := range members.List {
						for _, id := range field.Names {
							names[s.Name.Name+"."+id.Name] = true
						}
					}
				}
			}
		}
	}
	return names
}

// checkTest wants a test or fuzz function in the tests of the package, and for
// every case after a slash a text in that package, or in one that its tests
// import, that go test would make this name of; or a script of that name.
func checkTest(t *tree, out *findings, where, pkg, name string) {
	parts := strings.Split(name, "/")
	if !strings.HasPrefix(parts[0], "Test") && !strings.HasPrefix(parts[0], "Fuzz") {
		out.add(where, "%s is no name of a test", parts[0])
		return
	}
	found := false
	from := map[string]bool{pkg: true}
	for _, f := range t.files {
		if !f.test || f.pkg != pkg {
			continue
		}
		found = found || declared(f.File)[parts[0]]
		for p := range f.imports {
			if to, ok := local(p); ok {
				from[to] = true
			}
		}
	}
	if !found {
		out.add(where, "package %s has no %s", pkg, parts[0])
		return
	}
	for _, part := range parts[1:] {
		if !hasCase(t, from, part) && !hasScript(t, pkg, part) {
			out.add(where, "%s of %s has no case %s", parts[0], pkg, part)
		}
	}
}

func hasCase(t *tree, from map[string]bool, name string) (found bool) {
	for _, f := range t.files {
		if !from[f.pkg] || found {
			continue
		}
		ast.Inspect(f.File, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				s, _ := strconv.Unquote(lit.Value) // the parser has checked it
				found = found || strings.ReplaceAll(s, " ", "_") == name
			}
			return !found
		})
	}
	return found
}

func hasScript(t *tree, pkg, name string) bool {
	for p := range t.other {
		if strings.HasPrefix(p, pkg+"/testdata/") && path.Ext(p) == ".txtar" && strings.TrimSuffix(path.Base(p), ".txtar") == name {
			return true
		}
	}
	return false
}

func TestSpecMap(t *testing.T) { report(t, thisModule(t), ruleSpecMap) }

func TestSpecMapCanFail(t *testing.T) {
	const good = "| § | word | requirement | whose | code | test |\n| --- | --- | --- | --- | --- | --- |\n" +
		"| 2 | MUST | a | client, host | `client/a.go: T.M` | `client: TestA/a_case` |\n" +
		"| 3 | MAY | a | client | `client/a.go: T.Field`, `client/a.go: C` (so) | `client: FuzzA` |\n" +
		"| 4 | MUST NOT | a | host | none: the host's | none: nothing here |\n" +
		"| 5 | binds | a | service | `client/a.go: I.N` | `client: TestA/elsewhere` |\n" +
		"| 6.3 | SHOULD | a | publisher | `client/a.go: F` | `client: TestA/script` |\n" +
		"| 7 | MUST | a | client | `client/a.go: T` | `client: TestA` |\n\n" +
		"| D | decision | code | test |\n| --- | --- | --- | --- |\n" +
		"| D1 | a | `client/a.go: F` | `client: TestA` |\n"
	for _, tt := range []struct{ name, old, new, want string }{
		{"whole", "", "", ""},
		{"other code is no reference", "| a |", "| `a`, `go test`, `x:y` |", ""},
		{"file", "`client/a.go: F`", "`client/b.go: F`", "there is no file client/b.go"},
		{"test file as code", "`client/a.go: F`", "`client/a_test.go: TestA`", "no place in the code"},
		{"identifier", "a.go: F`", "a.go: G`", "client/a.go declares no G"},
		{"method", "T.M", "T.N", "declares no T.N"},
		{"field", "T.Field", "T.field", "declares no T.field"},
		{"method of an interface", "I.N", "I.M", "declares no I.M"},
		{"test", "client: FuzzA", "client: FuzzB", "package client has no FuzzB"},
		{"package", "client: FuzzA", "sqlite: FuzzA", "package sqlite has no FuzzA"},
		{"no test", "client: FuzzA", "client: helper", "is no name of a test"},
		{"case", "a_case", "b_case", "has no case b_case"},
		{"script", "TestA/script", "TestA/scrip", "has no case scrip"},
		{"case of a package that is not imported", "TestA/elsewhere", "TestA/far", "has no case far"},
		{"section", "| 7 | MUST", "| 2 | MUST", "§7 has no row"},
		{"decision left out", "| D1 |", "| D2 |", "D1 has no row"},
		{"unknown decision", "| D1 | a | `client/a.go: F` | `client: TestA` |\n", "| D1 | a | `client/a.go: F` | `client: TestA` |\n| D3 | a | `client/a.go: F` | `client: TestA` |\n", "is no decision"},
		{"decision twice", "| D1 | a | `client/a.go: F` | `client: TestA` |\n", strings.Repeat("| D1 | a | `client/a.go: F` | `client: TestA` |\n", 2), "here twice"},
		{"nobody's", "client, host", "everybody", "is nobody"},
		{"keyword", "| SHOULD |", "| WILL |", "is no keyword"},
		{"cells", "| MAY | a |", "| MAY |", "a row of 5 cells"},
		{"no code", "`client/a.go: T.M`", "somewhere", "names no place in the code"},
		{"no test at all", "`client: FuzzA`", "not yet", "names no test"},
		{"code as a test", "`client: FuzzA`", "`client/a.go: F`", "names no test"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if !strings.Contains(good, tt.old) {
				t.Fatalf("the good map has no %q", tt.old)
			}
			tr, err := parseTree(fstest.MapFS{
				specMap:                        {Data: []byte(strings.Replace(good, tt.old, tt.new, 1))},
				"docs/DECISIONS.md":            {Data: []byte("- **D1** text\n")},
				"client/a.go":                  {Data: []byte("package client; type T struct{ Field int }; func (t *T) M() {}; type I interface{ N() }; const C = 1; func F() {}")},
				"client/a_test.go":             {Data: []byte("package client; import _ \"" + module + "/storetest\"; func TestA(t int) { _ = \"a case\" }; func FuzzA(f int) {}; func helper() {}")},
				"client/testdata/script.txtar": {Data: []byte("exec true\n")},
				"storetest/a.go":               {Data: []byte("package storetest; var a = `elsewhere`")},
				"sqlite/a.go":                  {Data: []byte("package sqlite; var a = `far`")},
			})
			if err != nil {
				t.Fatal(err)
			}
			out := &findings{t: tr}
			ruleSpecMap(tr, out)
			got := strings.Join(out.list, "\n")
			if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
				t.Errorf("findings %q, want %q", out.list, tt.want)
			}
			if tt.want != "" && len(out.list) > 2 {
				t.Errorf("findings %q are more than one fault makes", out.list)
			}
		})
	}
	out := &findings{}
	ruleSpecMap(&tree{}, out)
	if len(out.list) != 1 {
		t.Errorf("without the document: findings %q", out.list)
	}
}
