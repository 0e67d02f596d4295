package client

// ForWorker is the same client as a worker needs it that reconciles saved requests
// of many scopes: it acts in scope, waits for no other holder (a *HeldError comes at
// once), and calls observer after Config.Observer.
func (c *Client) ForWorker(scope Scope, observer func(Event)) (*Client, error) {
	w, err := c.In(scope)
	if err != nil {
		return nil, err
	}
	first := w.cfg.Observer
	w.cfg.Wait = -1
	w.cfg.Observer = func(e Event) {
		first(e)
		observer(e)
	}
	return w, nil
}
