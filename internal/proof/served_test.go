package proof

import (
	"testing"
	"time"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/transport"
)

// served loads the documents as a host does, from the service itself.
func served(t *testing.T, origin string) (*agentic.Plan, error) {
	tr, err := transport.New(transport.Config{Origins: []string{origin}, AllowLoopback: true})
	if err != nil {
		return nil, err
	}
	profile, err := tr.Fetch(t.Context(), origin+"/agentic.json", agentic.MaxProfileBytes, 5*time.Second)
	if err != nil {
		return nil, err
	}
	openapi, err := tr.Fetch(t.Context(), origin+"/openapi.json", agentic.MaxOpenAPIBytes, 5*time.Second)
	if err != nil {
		return nil, err
	}
	return agentic.Load(profile, openapi, "", agentic.Options{AllowLoopback: true})
}
