package ticket

import (
	"bytes"
	_ "embed"
	"html/template"
	"net/http"
	"strings"
	"time"

	"github.com/agentic-go/agentic"
)

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// pageData is what the page shows: the profile as the service's own client reads it.
type pageData struct {
	Origin    string
	Profile   []pageAction
	Tokens    bool      // who asks has to have one
	Loopback  bool      // http
	Fault     FaultInfo // its name is "" for none
	Retention time.Duration
}

type pageAction struct {
	agentic.Action
	SubmitPath, StatusPath, VerifyPath string
}

// newPage makes the page for people. It is the same for everybody, and holds no
// script, style or form.
func newPage(cfg Config, profile, openapi []byte) (http.Handler, error) {
	plan, err := agentic.Load(profile, openapi, actionID, agentic.Options{AllowLoopback: true})
	if err != nil {
		return nil, err
	}
	d := pageData{
		Origin:    plan.Origin,
		Tokens:    cfg.Principal != nil,
		Loopback:  strings.HasPrefix(plan.Origin, "http:"),
		Retention: plan.Action.Retention,
	}
	for _, info := range Faults() {
		if info.Name == string(cfg.Fault) && cfg.Fault != Normal {
			d.Fault = info
		}
	}
	a := pageAction{Action: plan.Action}
	a.SubmitPath, a.StatusPath, a.VerifyPath = plan.Paths()
	d.Profile = []pageAction{a}
	var page bytes.Buffer
	if err := pageTemplate.Execute(&page, d); err != nil {
		return nil, err
	}
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
		h.Set("Referrer-Policy", "no-referrer")
		write(w, http.StatusOK, "text/html; charset=utf-8", page.Bytes())
	}), nil
}
