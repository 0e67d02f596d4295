package servicekit

import "github.com/agentic-go/agentic/conformance"

const groupRepeat = "Repeats"

var repeatChecks = []check{
	{info("repeat/same", groupRepeat, "the same key with the same input gives the original outcome", conformance.Must,
		"Repeated use of the same scoped ID and identical input returns the original outcome without creating another resource.", "5"),
		"Look the key up in the transaction that would write, and answer from the record.",
		func(t *trial) error {
			m, err := t.made()
			if err != nil {
				return err
			}
			return t.counted(0, func() error {
				for range 2 {
					if err := t.repeat(m); err != nil {
						return err
					}
				}
				return t.stands(m)
			})
		}},
}

// repeat sends a request again and expects the original outcome in the answer.
func (t *trial) repeat(m made) error {
	a, err := t.post(m.party, m.key)
	if err != nil {
		return err
	}
	t.repeated(m, a)
	return nil
}

// repeated expects the original outcome in the answer to a repeat.
func (t *trial) repeated(m made, a answer) {
	t.expect("answer to the repeat", a.is2xx(), "2xx", a.code())
	if id := resourceIn(m.party, a); t.tells() && id != "" {
		t.expect("resource in the answer", id == m.resource, shorten(m.resource), shorten(id))
	}
}

// tells reports whether the answers to submissions name resources: the draft does not
// ask for it.
func (t *trial) tells() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.base != nil && t.base.tells
}
