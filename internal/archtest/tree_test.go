package archtest

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// tree is a module's source: every Go file, whatever its build constraints, and
// the few other files that rules read.
type tree struct {
	fset  *token.FileSet
	files []*file
	other map[string]string // path to text: Makefile, *.md, testscripts
}

// file is one Go file. Its path and package are slash-separated, from the root.
type file struct {
	*ast.File
	path  string
	pkg   string
	test  bool
	lines int
	code  int // lines that are neither blank nor comment
}

// parseTree reads a module. Hidden folders, nested modules and Go files under
// testdata are not part of it.
func parseTree(fsys fs.FS) (*tree, error) {
	t := &tree{fset: token.NewFileSet(), other: map[string]string{}}
	err := fs.WalkDir(fsys, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		hidden := p != "." && strings.HasPrefix(path.Base(p), ".")
		if d.IsDir() {
			if hidden || path.Base(p) == "node_modules" {
				return fs.SkipDir
			}
			if _, err := fs.Stat(fsys, path.Join(p, "go.mod")); err == nil && p != "." {
				return fs.SkipDir
			}
			return nil
		}
		inTestdata := in(strings.ReplaceAll(p, "/", " "), "testdata")
		ext := path.Ext(p)
		switch {
		case hidden || !d.Type().IsRegular():
			return nil
		case ext == ".go" && !inTestdata:
			return t.addGo(fsys, p)
		case p == "Makefile" || p == "go.mod" || ext == ".md" || inTestdata && (ext == ".txt" || ext == ".txtar"):
			b, err := fs.ReadFile(fsys, p)
			t.other[p] = string(b)
			return err
		}
		return nil
	})
	return t, err
}

func (t *tree) addGo(fsys fs.FS, p string) error {
	src, err := fs.ReadFile(fsys, p)
	if err != nil {
		return err
	}
	f, err := parser.ParseFile(t.fset, p, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	g := &file{File: f, path: p, pkg: path.Dir(p), test: strings.HasSuffix(p, "_test.go"), lines: bytes.Count(src, []byte("\n"))}
	for line := range bytes.Lines(src) {
		line = bytes.TrimSpace(line)
		if len(line) > 0 && !bytes.HasPrefix(line, []byte("//")) {
			g.code++
		}
	}
	t.files = append(t.files, g)
	return nil
}

// packages lists the packages that have production code.
func (t *tree) packages() []string {
	var pkgs []string
	for f := range t.production {
		pkgs = append(pkgs, f.pkg)
	}
	slices.Sort(pkgs)
	return slices.Compact(pkgs)
}

// production ranges over the files that are not tests.
func (t *tree) production(yield func(*file) bool) {
	for _, f := range t.files {
		if !f.test && !yield(f) {
			return
		}
	}
}

// imports ranges over a file's import paths.
func (f *file) imports(yield func(string, *ast.ImportSpec) bool) {
	for _, spec := range f.Imports {
		p, _ := strconv.Unquote(spec.Path.Value) // the parser has checked it
		if !yield(p, spec) {
			return
		}
	}
}

// uses ranges over the names that a file takes from an imported library.
func (f *file) uses(library string, yield func(*ast.SelectorExpr)) {
	for p, spec := range f.imports {
		if p != library {
			continue
		}
		name := path.Base(p)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		ast.Inspect(f.File, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := sel.X.(*ast.Ident); ok && x.Name == name {
					yield(sel)
				}
			}
			return true
		})
	}
}

// local is the package's place in this module, if a path names one.
func local(importPath string) (pkg string, ok bool) {
	if importPath == module {
		return ".", true
	}
	return strings.CutPrefix(importPath, module+"/")
}

// findings collects what a rule has against a tree.
type findings struct {
	t    *tree
	list []string
}

func (f *findings) at(pos token.Pos, format string, args ...any) {
	p := f.t.fset.Position(pos)
	f.add(fmt.Sprintf("%s:%d", p.Filename, p.Line), format, args...)
}

func (f *findings) add(where, format string, args ...any) {
	f.list = append(f.list, where+": "+fmt.Sprintf(format, args...))
}

// root is the module's folder, seen from a test of this package.
const root = "../.."

func thisModule(t *testing.T) *tree {
	t.Helper()
	tr, err := parseTree(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	return tr
}
