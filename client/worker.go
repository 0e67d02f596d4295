package client

// ForWorker is the same client as a worker needs it that reconciles saved requests
// of many scopes: it acts in scope, waits for no other holder (a *HeldError comes at
// once), and calls observer after Config.Observer.
func (c *Client) ForWorker(scope Scope, observer func(Event)) (*Client, error) {
	cfg := c.cfg
	cfg.Scope, cfg.Wait = scope, -1
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	first := cfg.Observer
	cfg.Observer = func(e Event) {
		first(e)
		observer(e)
	}
	w := *c
	w.cfg = cfg
	return &w, nil
}
