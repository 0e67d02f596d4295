package main

import (
	"bytes"
	"errors"
	"go/build"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/agentic-go/agentic"
)

// The command accepts what the shop publishes and places an order, whose receipt
// says succeeded, and one that is refused.
func TestCommand(t *testing.T) {
	program := filepath.Join(t.TempDir(), "agentic.exe") // a name for every system
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "../../cmd/agentic").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	onEach(t, func(t *testing.T, c config) {
		origin, _ := start(t, c)
		command := func(args ...string) (code int, stdout, stderr string) {
			cmd := exec.CommandContext(t.Context(), program, args...)
			cmd.Env = append(os.Environ(), "AGENTIC_LEDGER="+filepath.Join(t.TempDir(), "ledger.db"), "SHOP_AUTH=Bearer secret")
			var out, diag bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &diag
			if err := cmd.Run(); err != nil {
				failed, ok := errors.AsType[*exec.ExitError](err)
				if !ok {
					t.Fatal(err)
				}
				code = failed.ExitCode()
			}
			return code, out.String(), diag.String()
		}
		var files []string
		for _, name := range []string{"agentic.json", "openapi.json"} {
			files = append(files, filepath.Join(t.TempDir(), name))
			if err := os.WriteFile(files[len(files)-1], get(t, origin+"/"+name), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if code, out, diag := command("validate", files[0], files[1], "--allow-loopback"); code != 0 || strings.Contains(out, "warning") {
			t.Errorf("validate: exit code %d\n%s%s", code, out, diag)
		}
		for _, tt := range []struct {
			input string
			code  int
			want  agentic.Outcome
		}{
			{`{"sku":"lamp","quantity":2}`, 0, agentic.Succeeded},
			{`{"sku":"chair","quantity":4}`, 3, agentic.Failed},
		} {
			code, out, diag := command("run", origin+"/agentic.json", "--allow-loopback", "--approve", origin, "--yes", "--json",
				"--header-from-env", "Authorization=SHOP_AUTH", "--input", tt.input)
			if receipt, found := agentic.ParseReceipt([]byte(out)); code != tt.code || receipt == nil || receipt.Outcome != tt.want {
				t.Errorf("run --input %s: exit code %d, %v, want %d and %s\n%s%s", tt.input, code, found, tt.code, tt.want, out, diag)
			}
		}
		if n := count(t, c, `SELECT count(*) FROM orders`); n != 1 {
			t.Errorf("%d orders, want 1", n)
		}
	})
}

// The documents that the repository has pass as they are.
func TestValidateFiles(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "run", "../../cmd/agentic", "validate", "agentic.json", "openapi.json").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "valid: 0 errors") || strings.Contains(string(out), "warning") {
		t.Errorf("%v\n%s", err, out)
	}
}

// What makes the shop conform is under 60 lines of Go, both databases together.
func TestDiffIsSmall(t *testing.T) {
	const limit = 60
	before, after := program(t, "before"), program(t, ".")
	if !slices.Equal(before.names, after.names) {
		t.Fatalf("files %q and %q", before.names, after.names)
	}
	n := 0
	for i := range before.names {
		n += changed(before.lines[i], after.lines[i])
	}
	t.Logf("%d lines are added or removed", n)
	if n == 0 || n >= limit {
		t.Errorf("%d lines are added or removed, want under %d", n, limit)
	}
}

type source struct {
	names []string
	lines [][]string
}

// program reads the production code of a package.
func program(t *testing.T, dir string) (s source) {
	t.Helper()
	pkg, err := build.ImportDir(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	if pkg.IgnoredGoFiles != nil || pkg.Name != "main" {
		t.Fatalf("%s: package %s, ignored %q", dir, pkg.Name, pkg.IgnoredGoFiles)
	}
	for _, name := range pkg.GoFiles {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		s.names = append(s.names, name)
		s.lines = append(s.lines, strings.Split(string(b), "\n"))
	}
	return s
}

// changed counts the lines that a smallest diff adds and removes: those of both
// files without their longest common subsequence, twice.
func changed(a, b []string) int {
	longest := make([]int, len(b)+1) // for a[i:], by the start in b
	for i := range slices.Backward(a) {
		diagonal := 0
		for j := range slices.Backward(b) {
			below := longest[j]
			if a[i] == b[j] {
				longest[j] = diagonal + 1
			} else {
				longest[j] = max(below, longest[j+1])
			}
			diagonal = below
		}
	}
	return len(a) + len(b) - 2*longest[0]
}

func TestChanged(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"abc", "abc", 0}, {"abc", "", 3}, {"", "abc", 3}, {"abc", "adc", 2}, {"abc", "xabcx", 2}, {"abab", "baba", 2}, {"ab", "ba", 2},
	} {
		if got := changed(strings.Split(tt.a, ""), strings.Split(tt.b, "")); got != tt.want {
			t.Errorf("%q, %q: %d, want %d", tt.a, tt.b, got, tt.want)
		}
	}
}
