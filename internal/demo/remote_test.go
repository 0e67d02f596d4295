package demo

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/agentic-go/agentic/internal/ticket"
)

// With tokens and a certificate the service listens for everybody, under the name
// that it was given.
func TestStartAtOffLoopback(t *testing.T) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	made := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"support.example"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, made, made, public, private)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	at := Place{Addr: "0.0.0.0:0", Origin: "https://support.example", TLS: &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private}}
	whoever := func(*http.Request) (string, error) { return "whoever", nil }
	s, err := StartAt(t.Context(), at, ticket.Config{Principal: whoever}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	}()
	roots := x509.NewCertPool()
	roots.AddCert(leaf)
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		_, port, err := net.SplitHostPort(s.Addr.String())
		if err != nil {
			return nil, err
		}
		return new(net.Dialer).DialContext(ctx, network, net.JoinHostPort("127.0.0.1", port))
	}
	client := &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, DialContext: dial, ForceAttemptHTTP2: true}}
	defer client.CloseIdleConnections()
	for url, want := range map[string]int{"https://support.example/agentic.json": 200, "https://support.example/tickets/T-1": 404} {
		res, err := client.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		if err := res.Body.Close(); err != nil || res.StatusCode != want || res.ProtoMajor != 2 {
			t.Errorf("%s: HTTP %d over %s, %v", url, res.StatusCode, res.Proto, err)
		}
	}
}
