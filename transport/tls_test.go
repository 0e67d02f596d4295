package transport

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentic-go/agentic/client"
)

// authority is a CA of one test.
type authority struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	ca := &authority{}
	leaf := ca.issue(t, &x509.Certificate{Subject: pkix.Name{CommonName: "test authority"}, IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	ca.cert, ca.key = leaf.Leaf, leaf.PrivateKey.(*ecdsa.PrivateKey)
	return ca
}

// issue signs a certificate; the first one of an authority signs itself.
func (ca *authority) issue(t testing.TB, template *x509.Certificate) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	if template.NotAfter.IsZero() {
		template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	}
	parent, signer := ca.cert, ca.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// server issues a certificate for 127.0.0.1.
func (ca *authority) server(t testing.TB) tls.Certificate {
	return ca.issue(t, &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})
}

func (ca *authority) pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(ca.cert)
	return p
}

// newTLSServer serves h over TLS with the certificate of config, HTTP/2 included.
func newTLSServer(t testing.TB, config *tls.Config, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	srv := httptest.NewUnstartedServer(h)
	srv.TLS = config
	srv.EnableHTTP2 = true
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.StartTLS()
	t.Cleanup(srv.Close)
	return srv
}

func TestTLS(t *testing.T) {
	ca, other := newAuthority(t), newAuthority(t)
	guest := ca.issue(t, &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	mutual := &tls.Config{Certificates: []tls.Certificate{ca.server(t)}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: ca.pool()}
	trust := func(c *Config) { c.RootCAs = ca.pool() }
	ok := result{200, client.Answered, ""}
	refused := result{0, client.NotSent, client.ClassTLS}
	for _, tc := range []struct {
		name   string
		server *tls.Config
		change func(*Config)
		post   result
		get    result
	}{
		{"CA of the host", &tls.Config{Certificates: []tls.Certificate{ca.server(t)}}, trust, ok, ok},
		{"unknown CA", &tls.Config{Certificates: []tls.Certificate{other.server(t)}}, trust, refused, refused},
		{"CA not given", &tls.Config{Certificates: []tls.Certificate{ca.server(t)}}, func(*Config) {}, refused, refused},
		{"other name", &tls.Config{Certificates: []tls.Certificate{ca.issue(t, &x509.Certificate{DNSNames: []string{"service.example"}})}},
			trust, refused, refused},
		{"expired", &tls.Config{Certificates: []tls.Certificate{ca.issue(t, &x509.Certificate{
			IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(-time.Hour)})}},
			trust, refused, refused},
		{"old version", &tls.Config{Certificates: []tls.Certificate{ca.server(t)}, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11},
			trust, refused, refused},
		{"client certificate", mutual, func(c *Config) { trust(c); c.ClientCertificates = []tls.Certificate{guest} }, ok, ok},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var hits atomic.Int64
			srv := newTLSServer(t, tc.server.Clone(), func(http.ResponseWriter, *http.Request) { hits.Add(1) })
			tr := newTransport(t, srv.URL, tc.change)
			expect(t, tr.Submit(context.Background(), submission(srv.URL)), tc.post)
			expect(t, tr.Get(context.Background(), read(srv.URL, "/requests/1")), tc.get)
			if n := hits.Load(); tc.post != ok && n != 0 {
				t.Errorf("%d requests arrived", n)
			}
		})
	}
}

// TestNoClientCertificate: in TLS 1.3 the refusal comes after the client may have
// begun to send, as an alert or as a reset that overtakes it.
func TestNoClientCertificate(t *testing.T) {
	ca := newAuthority(t)
	var hits atomic.Int64
	srv := newTLSServer(t, &tls.Config{Certificates: []tls.Certificate{ca.server(t)}, ClientAuth: tls.RequireAndVerifyClientCert,
		ClientCAs: ca.pool()}, func(http.ResponseWriter, *http.Request) { hits.Add(1) })
	tr := newTransport(t, srv.URL, func(c *Config) { c.RootCAs = ca.pool() })
	for _, e := range []client.Exchange{tr.Submit(context.Background(), submission(srv.URL)),
		tr.Get(context.Background(), read(srv.URL, "/requests/1"))} {
		if e.Reach != client.MaybeSent || e.Class != client.ClassTLS && e.Class != client.ClassBroken {
			t.Errorf("%+v", e)
		}
	}
	if n := hits.Load(); n != 0 {
		t.Errorf("%d requests arrived", n)
	}
}

// TestNotTLS speaks TLS to servers that do not.
func TestNotTLS(t *testing.T) {
	for name, answer := range map[string]string{"HTTP": "HTTP/1.0 400 Bad Request\r\n\r\n", "nothing": ""} {
		t.Run(name, func(t *testing.T) {
			s := newRawServer(t, func(s *rawServer, c *net.TCPConn, _ int64) {
				s.readBytes(c, 5)
				io.WriteString(c, answer)
				c.CloseWrite()
				io.Copy(io.Discard, c)
			})
			origin := "https://" + s.Addr().String()
			tr := newTransport(t, origin)
			expect(t, tr.Submit(context.Background(), submission(origin)), result{0, client.NotSent, client.ClassTLS})
			expect(t, tr.Get(context.Background(), read(origin, "/requests/1")), result{0, client.NotSent, client.ClassTLS})
		})
	}
}
