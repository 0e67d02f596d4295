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
	action, err := p.Choose(actionID)
	if err != nil {
		return nil, err
	}
	plan, ds := Bind(p, action.ID, doc)
	found = append(found, ds...)
	if err := found.Err(); err != nil {
		return nil, err
	}
	plan.Warnings = found
	return plan, nil
}

// Choose returns the action of that ID, or with "" the profile's only one. The
// error is an *UnknownActionError with all IDs of the profile.
func (p *Profile) Choose(actionID string) (Action, error) {
	if actionID == "" && len(p.Actions) == 1 {
		return p.Actions[0], nil
	}
	if action, ok := p.Action(actionID); ok {
		return action, nil
	}
	known := make([]string, len(p.Actions))
	for i, a := range p.Actions {
		known[i] = a.ID
	}
	return Action{}, &UnknownActionError{Action: actionID, Known: known}
}
