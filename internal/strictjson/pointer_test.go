package strictjson

import (
	"strings"
	"testing"
)

func TestLookup(t *testing.T) {
	v := parse(t, `{"foo":["bar",{"x":null}],"":0,"a/b":1,"c%d":2,"m~n":8," ":7,"01":9,"-":10,"length":11,"~1":12,"é":13,"s":"text"}`)
	tests := map[string]string{ // "" resolves to nothing
		"":                                   string(v.Compact()),
		"/foo":                               `["bar",{"x":null}]`,
		"/foo/0":                             `"bar"`,
		"/foo/1/x":                           "null",
		"/":                                  "0",
		"/a~1b":                              "1",
		"/c%d":                               "2",
		"/m~0n":                              "8",
		"/ ":                                 "7",
		"/01":                                "9",
		"/-":                                 "10",
		"/length":                            "11",
		"/~01":                               "12",
		"/é":                                 "13",
		"foo":                                "",
		"#/foo":                              "",
		"/foo/":                              "",
		"/foo/-":                             "",
		"/foo/2":                             "",
		"/foo/00":                            "",
		"/foo/01":                            "",
		"/foo/+1":                            "",
		"/foo/-0":                            "",
		"/foo/1.0":                           "",
		"/foo/1e0":                           "",
		"/foo/ 1":                            "",
		"/foo/1\n":                           "",
		"/foo/\u0661":                        "",
		"/foo/length":                        "",
		"/foo/4294967296":                    "",
		"/foo/18446744073709551616":          "",
		"/foo/" + strings.Repeat("9", 10000): "",
		"/foo/0/0":                           "",
		"/foo/1/x/y":                         "",
		"/s/0":                               "",
		"/s/length":                          "",
		"//":                                 "",
		"/FOO":                               "",
		"/a/b":                               "",
		"/~":                                 "",
		"/m~n":                               "",
		"/m~2n":                              "",
		"/m~":                                "",
	}
	for pointer, want := range tests {
		got, ok := v.Lookup(pointer)
		if string(got.Compact()) != want || ok != (want != "") {
			t.Errorf("%.40q: got %s, %v; want %s", pointer, got.Compact(), ok, want)
		}
	}
	if _, ok := (Value{}).Lookup(""); ok {
		t.Error("nothing resolves to something")
	}
}

func TestValidPointer(t *testing.T) {
	for s, want := range map[string]bool{"": true, "/": true, "//": true, "/a": true, "/~0~1": true, "/~01": true, "/\n": true,
		"a": false, " /a": false, "/~": false, "/~2": false, "/a~": false, "/~~0": false, "#/a": false} {
		if ValidPointer(s) != want {
			t.Errorf("%q: got %v", s, !want)
		}
	}
}

func FuzzPointer(f *testing.F) {
	f.Add(`{"a~b":{"c/d":[1,{"":null}]}}`, "/a~0b/c~1d/1/")
	f.Add(`[[1]]`, "/0/00")
	for _, doc := range accepted {
		f.Add(doc, "/0")
	}
	f.Fuzz(func(t *testing.T, doc, pointer string) {
		v, err := Parse([]byte(doc))
		if err != nil {
			return
		}
		// Every value is found at its own pointer, and there only.
		places := 0
		var walk func(v Value, at string)
		root := v
		walk = func(v Value, at string) {
			if places++; places > 1000 {
				return
			}
			got, ok := root.Lookup(at)
			if !ok || got.Offset() != v.Offset() || !Equal(got, v) {
				t.Fatalf("%q: the value at %q is not found there", doc, at)
			}
			for _, m := range v.Members() {
				walk(m.Value, at+"/"+EscapeToken(m.Name))
			}
			for i, e := range v.Elements() {
				walk(e, at+"/"+itoa(i))
			}
		}
		walk(v, "")
		// What any pointer finds has that pointer as its own.
		got, ok := v.Lookup(pointer)
		if !ok {
			return
		}
		if !ValidPointer(pointer) {
			t.Fatalf("the malformed pointer %q finds something", pointer)
		}
		at := v
		for token := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
			if pointer == "" {
				break
			}
			name := strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
			next := Value{}
			for _, m := range at.Members() {
				if m.Name == name {
					next = m.Value
				}
			}
			for i, e := range at.Elements() {
				if itoa(i) == name {
					next = e
				}
			}
			at = next
		}
		if at.Offset() != got.Offset() || !Equal(at, got) {
			t.Fatalf("%q in %q: got %s, a plain walk finds %s", pointer, doc, got.Compact(), at.Compact())
		}
	})
}
