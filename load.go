package agentic

// Load parses both documents and binds the action, the whole way from bytes to a
// Plan. With actionID "" it takes the profile's only action. The error is an
// *InvalidError, with every problem of both documents, or an
// *UnknownActionError. Warnings of a usable pair are in Plan.Warnings.
func Load(profile, openapi []byte, actionID string, opts Options) (*Plan, error) {
	p, found := ParseProfile(profile, opts)
	doc, ds := ParseOpenAPI(openapi)
	found = append(found, ds...)
	if err := found.Err(); err != nil {
		return nil, err
	}
	actionID, err := p.choose(actionID)
	if err != nil {
		return nil, err
	}
	plan, ds := Bind(p, actionID, doc)
	found = append(found, ds...)
	if err := found.Err(); err != nil {
		return nil, err
	}
	plan.Warnings = found
	return plan, nil
}

// choose resolves an action ID, or "" to the only action.
func (p *Profile) choose(actionID string) (string, error) {
	if actionID == "" && len(p.Actions) == 1 {
		return p.Actions[0].ID, nil
	}
	if _, ok := p.Action(actionID); ok {
		return actionID, nil
	}
	known := make([]string, len(p.Actions))
	for i, a := range p.Actions {
		known[i] = a.ID
	}
	return "", &UnknownActionError{Action: actionID, Known: known}
}
