package mcpcmd

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/internal/advice"
	"github.com/agentic-go/agentic/internal/documents"
	"github.com/agentic-go/agentic/internal/escape"
	"github.com/agentic-go/agentic/internal/strictjson"
)

// maxConfig bounds a configuration file and a token file, in bytes.
const maxConfig = 1 << 20

// Settings are what flags and a configuration file say beside a Reach.
type Settings struct {
	Profiles []Profile
	openapi  string // of the one profile of the command line

	Allow      []string            // [ORIGIN ]ACTION; nil is all
	Principals map[string][]string // what of Allow each may use, nil is all of it; without any, every principal is known

	Confirm, SameInputGuard, OpenGuard bool
	RepeatWithin, Recent, AnswerWithin time.Duration

	Listen, TLSCert, TLSKey, Tokens string
	AllowOrigins                    []string
}

// Profile is a profile and its OpenAPI document; without that one it is read from the
// profile's origin.
type Profile struct{ Name, OpenAPI string }

// file is a configuration file. Only what has is in it counts.
type file struct {
	Settings
	Place
	has map[string]bool // by the name of the flag
}

// check refuses what cannot be acted on.
func (s *Settings) check() error {
	if s.openapi != "" {
		if len(s.Profiles) != 1 {
			return advice.BadUsage("--openapi is for one PROFILE", "Name the documents of several profiles in a configuration file.")
		}
		s.Profiles[0].OpenAPI = s.openapi
	}
	if len(s.Profiles) == 0 {
		return advice.BadUsage("no profile is named", "Give PROFILE, a file or a URL, or --config FILE.")
	}
	for _, p := range s.Profiles {
		if p.Name == "-" || p.OpenAPI == "-" {
			return advice.BadUsage("a profile cannot be read from standard input, which belongs to the protocol", "Save it to a file.")
		}
	}
	switch {
	case (s.TLSCert == "") != (s.TLSKey == ""):
		return advice.BadUsage("--tls-cert and --tls-key belong together", "Give both or none.")
	case s.Listen == "" && (s.TLSCert != "" || s.Tokens != "" || len(s.AllowOrigins) > 0):
		return advice.BadUsage("--tls-cert, --tls-key, --tokens and --allow-origin are for HTTP", "Add --listen ADDRESS, or leave them out.")
	case s.RepeatWithin < 0 || s.Recent < 0 || s.AnswerWithin <= 0:
		return advice.BadUsage("a duration is below zero, or --answer-within is zero", "Leave it out for a value that does no harm.")
	}
	return nil
}

// checkAllowed refuses what names no action, as a wrong name must not look like a
// rule, and a principal without tokens that may use nothing.
func (s *Settings) checkAllowed(plans []*agentic.Plan, principal string) error {
	if _, ok := s.allowed(principal); !ok && s.Tokens == "" {
		return advice.BadUsage(`the principal "`+principal+`" is not in principals of the configuration file`, "Add it there, or give another one with --principal.")
	}
	all := slices.Clone(s.Allow)
	for _, list := range s.Principals {
		all = append(all, list...)
	}
	for _, name := range all {
		if !slices.ContainsFunc(plans, func(p *agentic.Plan) bool { return allows([]string{name}, p) }) {
			return advice.BadUsage(`no profile has the allowed action "`+name+`"`, "Write it as ACTION, or as 'ORIGIN ACTION'.")
		}
	}
	return nil
}

// allowed tells what a principal may use, and whether it is known at all. Its own list
// allows nothing that Allow does not.
func (s *Settings) allowed(principal string) (allow func(*agentic.Plan) bool, known bool) {
	list, known := s.Principals[principal]
	return func(p *agentic.Plan) bool { return allows(s.Allow, p) && allows(list, p) }, known || s.Principals == nil
}

// merge takes from a file what no flag says. With --listen ” nothing of HTTP is taken.
func (s *Settings) merge(f *file, changed func(flag string) bool) {
	s.Profiles, s.Principals = append(s.Profiles, f.Profiles...), f.Principals
	piped := changed("listen") && s.Listen == ""
	from := func(flag string) bool {
		return f.has[flag] && !changed(flag) && !(piped && slices.Contains([]string{"tls-cert", "tls-key", "tokens", "allow-origin"}, flag))
	}
	for flag, set := range map[string]func(){
		"allow": func() { s.Allow = f.Allow }, "confirm": func() { s.Confirm = f.Confirm },
		"same-input-guard": func() { s.SameInputGuard = f.SameInputGuard }, "open-guard": func() { s.OpenGuard = f.OpenGuard },
		"repeat-within": func() { s.RepeatWithin = f.RepeatWithin }, "recent": func() { s.Recent = f.Recent },
		"answer-within": func() { s.AnswerWithin = f.AnswerWithin }, "listen": func() { s.Listen = f.Listen },
		"tls-cert": func() { s.TLSCert = f.TLSCert }, "tls-key": func() { s.TLSKey = f.TLSKey }, "tokens": func() { s.Tokens = f.Tokens },
		"allow-origin": func() { s.AllowOrigins = f.AllowOrigins },
	} {
		if from(flag) {
			set()
		}
	}
}

// reader reads the members of a configuration file; its first problem stays.
type reader struct {
	dir string
	err error
}

func (r *reader) fail(at, want string) {
	if r.err == nil {
		r.err = fmt.Errorf("%s is not %s", at, want)
	}
}

func (r *reader) text(v strictjson.Value, at string) string {
	s, ok := v.Text()
	if !ok || s == "" {
		r.fail(at, "a text")
	}
	return s
}

func (r *reader) truth(v strictjson.Value, at string) bool {
	if v.Kind() != strictjson.Bool {
		r.fail(at, "true or false")
	}
	return v.Truth()
}

func (r *reader) duration(v strictjson.Value, at string) time.Duration {
	d, err := time.ParseDuration(r.text(v, at))
	if err != nil {
		r.fail(at, "a duration such as 20s, 2m or 24h")
	}
	return d
}

// name is a file, from the folder of the configuration file, or a URL.
func (r *reader) name(v strictjson.Value, at string) string {
	s := r.text(v, at)
	if s == "" || documents.IsURL(s) || filepath.IsAbs(s) {
		return s
	}
	return filepath.Join(r.dir, s)
}

func (r *reader) texts(v strictjson.Value, at string) []string {
	if v.Kind() != strictjson.Array {
		r.fail(at, "a list of texts")
	}
	out := []string{}
	for _, e := range v.Elements() {
		out = append(out, r.text(e, at+"[]"))
	}
	return out
}

// members gives each member of an object to a function that knows it, or fails.
func (r *reader) members(v strictjson.Value, at string, each func(name string, v strictjson.Value) bool) {
	if v.Kind() != strictjson.Object {
		r.fail(at, "an object")
	}
	for _, m := range v.Members() {
		if !each(m.Name, m.Value) && r.err == nil {
			r.err = fmt.Errorf("%s has an unknown member %q", at, escape.Bounded(m.Name, 60))
		}
	}
}

// parse reads a configuration file that is in a folder.
func parse(data []byte, dir string) (*file, error) {
	if len(data) > maxConfig {
		return nil, errors.New("it is larger than 1 MiB")
	}
	v, err := strictjson.Parse(data)
	if err != nil {
		return nil, err
	}
	f, r := &file{has: map[string]bool{}}, &reader{dir: dir}
	r.members(v, "the file", func(name string, v strictjson.Value) bool {
		set := func(flag string) { f.has[flag] = true }
		switch name {
		case "profiles":
			r.profiles(f, v)
		case "approve":
			f.Approve = r.texts(v, name)
		case "allow_loopback":
			f.AllowLoopback = r.truth(v, name)
		case "headers_from_env":
			r.headers(f, v)
		case "ledger":
			f.Ledger = r.text(v, name) // as --ledger has it: a file from where the command runs, or a URL
			if !isDatabase(f.Ledger) {
				f.Ledger = r.name(v, name)
			}
		case "principal":
			f.Principal = r.text(v, name)
		case "environment":
			f.Environment = r.text(v, name)
		case "principals":
			r.principals(f, v)
		case "allow":
			f.Allow = r.texts(v, name)
			set("allow")
		case "confirm":
			f.Confirm = r.truth(v, name)
			set("confirm")
		case "same_input_guard":
			f.SameInputGuard = r.truth(v, name)
			set("same-input-guard")
		case "open_guard":
			f.OpenGuard = r.truth(v, name)
			set("open-guard")
		case "repeat_within":
			f.RepeatWithin = r.duration(v, name)
			set("repeat-within")
		case "recent":
			f.Recent = r.duration(v, name)
			set("recent")
		case "answer_within":
			f.AnswerWithin = r.duration(v, name)
			set("answer-within")
		case "listen":
			f.Listen = r.text(v, name)
			set("listen")
		case "tls_cert":
			f.TLSCert = r.name(v, name)
			set("tls-cert")
		case "tls_key":
			f.TLSKey = r.name(v, name)
			set("tls-key")
		case "tokens":
			f.Tokens = r.name(v, name)
			set("tokens")
		case "allow_origins":
			f.AllowOrigins = r.texts(v, name)
			set("allow-origin")
		default:
			return false
		}
		return true
	})
	return f, r.err
}

func isDatabase(name string) bool {
	for _, scheme := range []string{"postgres://", "postgresql://"} {
		if len(name) >= len(scheme) && name[:len(scheme)] == scheme {
			return true
		}
	}
	return false
}

// profiles are names, or objects with the name of the OpenAPI document too.
func (r *reader) profiles(f *file, v strictjson.Value) {
	if v.Kind() != strictjson.Array {
		r.fail("profiles", "a list")
	}
	for _, e := range v.Elements() {
		if e.Kind() == strictjson.String {
			f.Profiles = append(f.Profiles, Profile{Name: r.name(e, "profiles[]")})
			continue
		}
		var p Profile
		r.members(e, "profiles[]", func(name string, v strictjson.Value) bool {
			switch name {
			case "profile":
				p.Name = r.name(v, name)
			case "openapi":
				p.OpenAPI = r.name(v, name)
			default:
				return false
			}
			return true
		})
		if p.Name == "" {
			r.fail("profiles[].profile", "there")
		}
		f.Profiles = append(f.Profiles, p)
	}
}

// headers are, by origin, the environment variables that fill headers.
func (r *reader) headers(f *file, v strictjson.Value) {
	r.members(v, "headers_from_env", func(origin string, v strictjson.Value) bool {
		r.members(v, "headers_from_env."+escape.Bounded(origin, 60), func(name string, v strictjson.Value) bool {
			f.Headers = append(f.Headers, origin+" "+name+"="+r.text(v, "a variable of headers_from_env"))
			return true
		})
		return true
	})
}

// principals are, by name, what each may use.
func (r *reader) principals(f *file, v strictjson.Value) {
	f.Principals = map[string][]string{}
	r.members(v, "principals", func(principal string, v strictjson.Value) bool {
		f.Principals[principal] = nil
		r.members(v, "principals[]", func(name string, v strictjson.Value) bool {
			if name != "allow" {
				return false
			}
			f.Principals[principal] = r.texts(v, "principals[].allow")
			return true
		})
		return true
	})
}
