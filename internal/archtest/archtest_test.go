package archtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// A rule adds what it has against a tree.
type rule func(*tree, *findings)

var rules = map[string]rule{
	"arrows":      ruleArrows,
	"stale":       ruleStale,
	"libraries":   ruleLibraries,
	"bans":        ruleBans,
	"goroutines":  ruleGoroutines,
	"interfaces":  ruleInterfaces,
	"sizes":       ruleSizes,
	"packageDocs": rulePackageDocs,
	"whole":       ruleWhole,
	"citations":   ruleCitations,
	"makefile":    ruleMakefile,
}

func TestRules(t *testing.T) {
	tr := thisModule(t)
	for name, r := range rules {
		t.Run(name, func(t *testing.T) { report(t, tr, r) })
	}
	t.Run("layers", func(t *testing.T) {
		report(t, tr, func(_ *tree, out *findings) { ruleLayers(arrows, out) })
	})
	t.Run("dependencies", func(t *testing.T) {
		var m modfile
		if err := json.Unmarshal(goCommand(t, "mod", "edit", "-json"), &m); err != nil {
			t.Fatal(err)
		}
		report(t, tr, func(tr *tree, out *findings) { ruleDependencies(tr, &m, out) })
	})
}

func report(t *testing.T, tr *tree, r rule) {
	t.Helper()
	out := &findings{t: tr}
	r(tr, out)
	slices.Sort(out.list)
	for _, s := range out.list {
		t.Error(s)
	}
}

// The rules look at the packages that the go command builds, and at no others.
func TestTreeIsWhatGoLists(t *testing.T) {
	var listed []string
	for p := range strings.FieldsSeq(string(goCommand(t, "list", "-e", "-f", "{{if or .GoFiles .IgnoredGoFiles}}{{.ImportPath}}{{end}}", "./..."))) {
		pkg, ok := local(p)
		if !ok {
			t.Errorf("package %s is not of this module", p)
		}
		listed = append(listed, pkg)
	}
	slices.Sort(listed)
	if parsed := thisModule(t).packages(); !slices.Equal(listed, parsed) {
		t.Errorf("go list has %q\nthe rules saw %q", listed, parsed)
	}
}

func TestPackagesReachNothingBelowThem(t *testing.T) {
	for pkg, never := range neverBelow {
		deps := string(goCommand(t, "list", "-deps", "./"+pkg))
		if len(strings.Fields(deps)) < 2 {
			t.Errorf("%s: no dependency seen", pkg)
		}
		for p := range strings.FieldsSeq(deps) {
			if in(never, p) {
				t.Errorf("%s depends on %s", pkg, p)
			}
		}
	}
}

func goCommand(t *testing.T, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = root
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	b, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, &stderr)
	}
	return b
}

// Every rule finds what it is for, and only that.
func TestRulesCanFail(t *testing.T) {
	const goodMakefile = "PURE := github.com/agentic-go/agentic(/internal/(strictjson|escape|inputschema|archtest))?\n"
	const manyMethods = "A()\nB()\nC()\nD()\nE()\nF()\nG()\nH()\n"

	for _, tt := range []struct {
		name string
		rule rule
		path string
		src  string
		want string // part of the one finding, or "" for none
	}{
		{"arrow down", ruleArrows, "client/a.go", `package client; import _ "github.com/agentic-go/agentic"`, ""},
		{"arrow up", ruleArrows, "a.go", `package agentic; import _ "github.com/agentic-go/agentic/client"`, ". may not import client"},
		{"arrow up to the root", ruleArrows, "internal/strictjson/a.go", `package strictjson; import _ "github.com/agentic-go/agentic"`, "may not import .:"},
		{"arrow on another platform", ruleArrows, "client/a_windows.go", `package client; import _ "github.com/agentic-go/agentic/sqlite"`, "client may not import sqlite"},
		{"package without a line", ruleArrows, "cache/a.go", `package cache`, "no line in the table of arrows"},
		{"test across", ruleArrows, "client/a_test.go", `package client; import _ "github.com/agentic-go/agentic/sqlite"`, ""},
		{"test to the top", ruleArrows, "client/a_test.go", `package client; import _ "github.com/agentic-go/agentic/internal/cli"`, "wires parts together"},
		{"test of a pure package", ruleArrows, "a_test.go", `package agentic; import _ "github.com/agentic-go/agentic/client"`, "pure package"},

		{"library in its place", ruleLibraries, "internal/cli/a.go", `package cli; import _ "github.com/spf13/cobra/doc"`, ""},
		{"library elsewhere", ruleLibraries, "client/a.go", `package client; import _ "github.com/spf13/cobra"`, "client may not import github.com/spf13/cobra"},
		{"jsontext elsewhere", ruleLibraries, "client/a.go", `package client; import _ "github.com/go-json-experiment/json/jsontext"`, "client may not import"},
		{"library without a line", ruleLibraries, "client/a_test.go", `package client; import _ "example.com/thing"`, "no line in the table of libraries"},
		{"files in the root", ruleLibraries, "a.go", `package agentic; import _ "os"`, ". may not import os"},
		{"below a restricted path", ruleLibraries, "a.go", `package agentic; import _ "net/http/httptest"`, ". may not import net/http/httptest"},
		{"free below a restricted path", ruleLibraries, "a.go", `package agentic; import _ "net/url"`, ""},
		{"cgo", ruleLibraries, "sqlite/a.go", `package sqlite; import "C"`, "sqlite may not import C"},
		{"test library in production", ruleLibraries, "client/a.go", `package client; import _ "testing"`, "client may not import testing"},
		{"test library in a test", ruleLibraries, "client/a_test.go", `package client; import _ "testing"`, ""},
		{"dot import", ruleLibraries, "client/a.go", `package client; import . "strings"`, "dot import"},

		{"clock", ruleBans, "a.go", `package agentic; import "time"; var t = time.Now()`, "no clock"},
		{"clock under another name", ruleBans, "a.go", `package agentic; import clock "time"; var t = clock.Now`, "no clock"},
		{"time without a clock", ruleBans, "a.go", `package agentic; import "time"; var t time.Time`, ""},
		{"loose decoding", ruleBans, "sqlite/a.go", `package sqlite; import "encoding/json"; var d = json.Unmarshal`, "D1"},
		{"encoding", ruleBans, "sqlite/a.go", `package sqlite; import "encoding/json"; var e = json.Marshal`, ""},
		{"decoding of our own", ruleBans, "internal/savedform/savedform.go", `package savedform; import "encoding/json"; var d = json.NewDecoder`, ""},
		{"loose decoding in a test", ruleBans, "sqlite/a_test.go", `package sqlite; import "encoding/json"; var d = json.Unmarshal`, ""},
		{"exit in the command", ruleBans, "internal/cli/a.go", `package cli; import "os"; var e = os.Exit`, ""},
		{"exit in a library", ruleBans, "sqlite/a.go", `package sqlite; import "os"; var e = os.Exit`, "only the command ends the process"},

		{"goroutine", ruleGoroutines, "a.go", `package agentic; func f() { go f() }`, "goroutine"},
		{"channel", ruleGoroutines, "a.go", `package agentic; type c chan int`, "channel"},
		{"goroutine elsewhere", ruleGoroutines, "client/a.go", `package client; func f() { go f() }`, ""},

		{"interface", ruleInterfaces, "client/a.go", "package client; type I interface {\n" + manyMethods + "}; var i I", ""},
		{"large interface", ruleInterfaces, "client/a.go", "package client; type I interface {\n" + manyMethods + "I() }; var i I", "9 methods"},
		{"large by embedding", ruleInterfaces, "client/a.go", "package client; type J interface { Z() }; type I interface {\n" + manyMethods + "J }; var i I", "9 methods"},
		{"foreign embedding", ruleInterfaces, "client/a.go", `package client; import "io"; type I interface { io.Closer }; var i I`, "write its methods out"},
		{"interface without a consumer", ruleInterfaces, "client/a.go", `package client; type I interface { A() }`, "move it to its consumer"},

		{"long file", ruleSizes, "client/a_test.go", "package client" + strings.Repeat("\n", 601), "601 lines"},
		{"long enough file", ruleSizes, "client/a_test.go", "package client" + strings.Repeat("\n", 600), ""},
		{"long main", ruleSizes, "cmd/agentic/main.go", "package main" + strings.Repeat("\nvar _ = 1", 20), "21 lines of code"},
		{"commented main", ruleSizes, "cmd/agentic/main.go", "package main" + strings.Repeat("\n// text\n", 20), ""},
		{"file named for nothing", ruleSizes, "client/utils.go", "package client", "says nothing"},
		{"package named for nothing", ruleSizes, "internal/common/a.go", "package common", "says nothing"},

		{"package comment", rulePackageDocs, "client/a.go", "// Package client is.\npackage client", ""},
		{"no package comment", rulePackageDocs, "client/a.go", "// Copyright.\n\npackage client", "no comment"},

		{"leftover", ruleWhole, "client/a.go", "package client\n// TO" + "DO: more", "in a comment"},
		{"skipped test", ruleWhole, "client/a_test.go", `package client; import "testing"; func TestA(t *testing.T) { t.Skip() }`, "may be skipped"},
		{"short test", ruleWhole, "client/a_test.go", `package client; import "testing"; var s = testing.Short()`, "may be skipped"},
		{"platform", ruleWhole, "client/a_test.go", "//go:build unix && !darwin\n\npackage client", ""},
		{"hidden by a tag", ruleWhole, "client/a_test.go", "//go:build unix && integration\n\npackage client", "build tag integration"},
		{"skipped script", ruleWhole, "client/testdata/a.txtar", "[!unix] skip 'no'\n", "a skipped testscript"},
		{"file in a script", ruleWhole, "client/testdata/a.txtar", "exec true\n-- f --\nskip\n", ""},

		{"citation", ruleCitations, "client/a.go", "package client\n// Held back (D3).", ""},
		{"wrong citation", ruleCitations, "client/a.go", "package client\n// Held back (D31).", "D31 is not in"},

		{"makefile", ruleMakefile, "Makefile", goodMakefile, ""},
		{"sparing too much", ruleMakefile, "Makefile", strings.Replace(goodMakefile, "(/internal", "(/client|/internal", 1), "PURE has client"},
		{"sparing too little", ruleMakefile, "Makefile", strings.Replace(goodMakefile, "|escape", "", 1), "PURE has internal/escape"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fsys := fstest.MapFS{
				"docs/DECISIONS.md": {Data: []byte("- **D3** text\n")},
				tt.path:             {Data: []byte(tt.src)},
			}
			tr, err := parseTree(fsys)
			if err != nil {
				t.Fatal(err)
			}
			out := &findings{t: tr}
			tt.rule(tr, out)
			if tt.want == "" && len(out.list) > 0 || tt.want != "" && (len(out.list) != 1 || !strings.Contains(out.list[0], tt.want)) {
				t.Errorf("findings %q, want %q", out.list, tt.want)
			}
		})
	}
}

func TestLayersCanFail(t *testing.T) {
	for _, tt := range []struct {
		name  string
		table map[string]string
		want  string
	}{
		{"one way", map[string]string{"a": "b c", "b": "c", "c": ""}, ""},
		{"cycle", map[string]string{"a": "b", "b": "c", "c": "a"}, "closes a cycle"},
		{"to nowhere", map[string]string{"a": "b"}, "no line in the table"},
	} {
		out := &findings{}
		ruleLayers(tt.table, out)
		if got := fmt.Sprint(out.list); (tt.want == "") != (len(out.list) == 0) || !strings.Contains(got, tt.want) {
			t.Errorf("%s: findings %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestStaleCanFail(t *testing.T) {
	out := &findings{}
	ruleStale(&tree{}, out)
	if len(out.list) != len(arrows) {
		t.Errorf("%d findings in an empty tree, want one for each of %d lines", len(out.list), len(arrows))
	}
}

func TestDependenciesCanFail(t *testing.T) {
	var m modfile
	err := json.Unmarshal([]byte(`{"Require": [
		{"Path": "example.com/a"}, {"Path": "example.com/b", "Indirect": true}, {"Path": "example.com/c/v2"},
		{"Path": "example.com/tools", "Indirect": true}
	], "Tool": [{"Path": "example.com/tools/cmd/check"}]}`), &m)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		text string
		want int
	}{
		{"`example.com/a`: x\n| example.com/c/v2 | y |\nexample.com/tools.\n", 0},
		{"example.com/a/other, example.com/c/v2, example.com/tools", 1},
		{"example.com/a, example.com/c", 2},
		{"", 3},
	} {
		out := &findings{}
		ruleDependencies(&tree{other: map[string]string{"docs/ARCHITECTURE.md": tt.text}}, &m, out)
		if len(out.list) != tt.want {
			t.Errorf("%q: findings %q, want %d", tt.text, out.list, tt.want)
		}
	}
	out := &findings{}
	ruleDependencies(&tree{}, &m, out)
	if len(out.list) != 4 {
		t.Errorf("without the document: findings %q", out.list)
	}
}
