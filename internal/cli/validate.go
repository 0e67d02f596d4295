package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/internal/advice"
	"github.com/agentic-go/agentic/internal/documents"
	"github.com/agentic-go/agentic/internal/render"
)

const validateHelp = `Check a profile, and with OPENAPI the binding of every action in it.

Every problem is reported with its place, what is wrong and how to mend it. An
error makes the document unusable; a warning does not. Nothing is read from the
network: PROFILE and OPENAPI are files, and '-' is standard input.

Without OPENAPI only the profile itself is checked. A profile whose actions name
more than one OpenAPI document needs one call for each document; every action is
looked up in the one that is given.`

func (a *app) newValidate() *cobra.Command {
	var opts agentic.Options
	cmd := &cobra.Command{
		Use:     "validate PROFILE [OPENAPI]",
		Short:   "Check a profile and its OpenAPI binding",
		Long:    validateHelp,
		Example: "  agentic validate agentic.json openapi.json\n  curl -s https://support.example/agentic.json | agentic validate - --json",
		Args:    arguments(1, 2, "PROFILE [OPENAPI]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			openapi := ""
			if len(args) == 2 {
				openapi = args[1]
			}
			return a.validate(cmd.Context(), args[0], openapi, opts)
		},
	}
	cmd.Flags().BoolVar(&opts.AllowLoopback, "allow-loopback", false, "accept an http origin on localhost, 127.0.0.1 or [::1]")
	a.jsonFlag(cmd)
	return cmd
}

func (a *app) validate(ctx context.Context, profile, openapi string, opts agentic.Options) error {
	for _, name := range []string{profile, openapi} {
		if documents.IsURL(name) {
			return advice.BadUsage("validate reads files, not "+name, "Save it first, such as with curl -o agentic.json.")
		}
	}
	if profile == "-" && openapi == "-" {
		return advice.BadUsage("standard input cannot hold both documents", "Save one of them to a file.")
	}
	data, err := documents.Read(ctx, a.stdin, profile, agentic.MaxProfileBytes)
	if err != nil {
		return err
	}
	v := render.Validation{Checked: []string{"profile"}, Actions: []render.ValidAction{}}
	p, found := agentic.ParseProfile(data, opts)
	found = documents.Truthful(found, data, agentic.MaxProfileBytes)
	var doc *agentic.OpenAPI
	if openapi != "" {
		v.Checked = append(v.Checked, "openapi")
		if data, err = documents.Read(ctx, a.stdin, openapi, agentic.MaxOpenAPIBytes); err != nil {
			return err
		}
		var ds agentic.Diagnostics
		doc, ds = agentic.ParseOpenAPI(data)
		found = append(found, documents.Truthful(ds, data, agentic.MaxOpenAPIBytes)...)
	}
	if p != nil {
		v.Origin, v.Digest = p.Origin, p.Digest()
		for _, action := range p.Actions {
			va := render.ValidAction{ID: action.ID, Description: action.Description}
			if doc != nil {
				plan, ds := agentic.Bind(p, action.ID, doc)
				found = append(found, ds...)
				if plan != nil {
					va.Submit = plan.SubmitURL()
				}
			}
			v.Actions = append(v.Actions, va)
		}
	}
	v.Diagnostics = render.Unique(found)
	v.Valid = !v.Diagnostics.HasErrors()
	if !v.Valid {
		a.exit = exitError
	}
	if a.json {
		return a.writeJSON(v)
	}
	return a.print(v.Text(profile, openapi))
}
