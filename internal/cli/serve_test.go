package cli

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/internal/pgtest"
	"github.com/agentic-go/agentic/internal/ticket"
)

// tlsFiles is a certificate for localhost that a CA of the test signed.
type tlsFiles struct{ ca, cert, key string }

func newTLSFiles(t *testing.T) tlsFiles {
	t.Helper()
	dir := t.TempDir()
	f := tlsFiles{filepath.Join(dir, "ca.pem"), filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")}
	write := func(name, kind string, der []byte, err error) {
		t.Helper()
		if err == nil {
			err = os.WriteFile(name, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	newKey := func() *ecdsa.PrivateKey {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	caKey, key := newKey(), newKey()
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test CA"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "localhost"}, NotBefore: ca.NotBefore, NotAfter: ca.NotAfter,
		DNSNames: []string{"localhost"}, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, ca, ca, caKey.Public(), caKey)
	write(f.ca, "CERTIFICATE", der, err)
	der, err = x509.CreateCertificate(rand.Reader, leaf, ca, key.Public(), caKey)
	write(f.cert, "CERTIFICATE", der, err)
	der, err = x509.MarshalPKCS8PrivateKey(key)
	write(f.key, "PRIVATE KEY", der, err)
	return f
}

// tokenFile has a line for each "principal token".
func tokenFile(t *testing.T, lines ...string) string {
	t.Helper()
	var b strings.Builder
	for _, line := range lines {
		principal, token, _ := strings.Cut(line, " ")
		fmt.Fprintf(&b, "%s %x\n", principal, sha256.Sum256([]byte(token)))
	}
	name := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(name, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// serve refuses what it cannot act on, and above all to be reached by others
// without tokens and TLS.
func TestServeRefuses(t *testing.T) {
	origin := serveProcess(t, "normal")
	files, tokens := newTLSFiles(t), tokenFile(t, "ann secret-token")
	broken := filepath.Join(t.TempDir(), "broken")
	if err := os.WriteFile(broken, []byte("ann secret-token\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	withTLS := []string{"--tls-cert", files.cert, "--tls-key", files.key}
	withTokens := []string{"--token-file", tokens}
	all := append(append([]string{}, withTLS...), withTokens...)
	const needed = "Off loopback the service needs --token-file, --tls-cert and --tls-key."
	for _, tt := range []struct {
		args []string
		more []string
		code int
		want string
	}{
		{[]string{"--addr", "0.0.0.0:0"}, nil, exitUsage, needed},
		{[]string{"--addr", ":0"}, nil, exitUsage, needed},
		{[]string{"--addr", "192.0.2.1:0"}, nil, exitUsage, needed},
		{[]string{"--addr", "127.0.0.2:0"}, nil, exitUsage, needed},
		{[]string{"--addr", "0.0.0.0:0"}, withTLS, exitUsage, needed},
		{[]string{"--addr", "0.0.0.0:0"}, withTokens, exitUsage, needed},
		{[]string{"--addr", "127.0.0.1:0", "--origin", "https://support.example"}, withTLS, exitUsage, needed},
		{[]string{"--addr", "127.0.0.1:0", "--origin", "https://support.example"}, withTokens, exitUsage, "the service answers http"},
		{[]string{"--addr", "127.0.0.1:0", "--origin", "http://127.0.0.1:80"}, withTLS, exitUsage, "--origin http://127.0.0.1:80"},
		{[]string{"--addr", "127.0.0.1:0", "--origin", "http://support.example"}, nil, exitUsage, "is not HTTPS"},
		{[]string{"--addr", "127.0.0.1:0", "--origin", "https://support.example/"}, all, exitUsage, "--origin https://support.example/"},
		{[]string{"--addr", "0.0.0.0:0"}, all, exitUsage, "Give their origin with --origin"},
		{[]string{"--addr", ":0"}, all, exitUsage, "Give their origin with --origin"},
		{[]string{"--addr", "[::]:0"}, all, exitUsage, "Give their origin with --origin"},
		{[]string{"--inspect", "--addr", "127.0.0.1:0", "--origin", "https://support.example"}, all, exitUsage, "Leave --inspect out"},
		{[]string{"--inspect", "--addr", "0.0.0.0:0", "--origin", "https://support.example"}, all, exitUsage, "Leave --inspect out"},
		{[]string{"--inspect", "--addr", "0.0.0.0:0", "--origin", "https://localhost"}, all, exitUsage, "Leave --inspect out"},
		{[]string{"--addr", "localhost"}, nil, exitUsage, "missing port"},
		{[]string{"--addr", "127.0.0.1:99999"}, nil, exitUsage, "not a number from 0 to 65535"},
		{[]string{"--addr", "127.0.0.1:http"}, nil, exitUsage, "not a number"},
		{[]string{"--addr", "127.0.0.1:"}, nil, exitUsage, "not a number"},
		{[]string{"--addr", strings.TrimPrefix(origin, "http://")}, nil, exitError, "is in use by another program"},
		{[]string{"--tls-cert", files.cert}, nil, exitUsage, "belong together"},
		{[]string{"--tls-cert", files.cert, "--tls-key", files.cert}, nil, exitError, files.cert},
		{[]string{"--token-file", broken}, nil, exitError, "line 1: the hash is not 64 hexadecimal digits"},
		{[]string{"--token-file", broken + "-none"}, nil, exitError, "no such file"},
		{[]string{"--retention", "59s"}, nil, exitUsage, "1m to 168h"},
		{[]string{"--retention", "169h"}, nil, exitUsage, "1m to 168h"},
		{[]string{"--retention", "60500ms"}, nil, exitUsage, "whole seconds"},
		{[]string{"--retention", "1d"}, nil, exitUsage, "--retention"},
		{[]string{"--db", "x.db", "--postgres", "postgres://127.0.0.1:1/x"}, nil, exitUsage, "Give one of them"},
		{[]string{"--postgres", "postgres://u:secret-token@127.0.0.1:1/x", "--addr", "127.0.0.1:0"}, nil, exitError, "Look at --postgres"},
	} {
		args := append(append([]string{"serve"}, tt.args...), tt.more...)
		code, out, diag := exitOf(t, command(t, args...))
		if code != tt.code || out != "" || !strings.Contains(diag, tt.want) || strings.Contains(diag, "secret-token") {
			t.Errorf("%q: exit code %d, stdout %q, stderr %q; want %d and %q", args, code, out, diag, tt.code, tt.want)
		}
	}
}

// --retention is what the profile says.
func TestServeRetention(t *testing.T) {
	origin := serveProcess(t, "normal", "--retention", "90m")
	plan, err := agentic.Load(get(t, origin+"/agentic.json"), get(t, origin+"/openapi.json"), "", agentic.Options{AllowLoopback: true})
	if err != nil || plan.Action.Retention != 90*time.Minute {
		t.Errorf("retention %s, %v", plan.Action.Retention, err)
	}
	if page := get(t, origin+"/"); !strings.Contains(string(page), "1h30m0s") {
		t.Errorf("the page does not tell it:\n%s", page)
	}
}

// With tokens and TLS, principals are told apart, and the command itself is a
// client of the service.
func TestServeTokensAndTLS(t *testing.T) {
	files, tokens := newTLSFiles(t), tokenFile(t, "ann token-of-ann", "bob token-of-bob")
	cmd := command(t, "serve", "--addr", "localhost:0", "--token-file", tokens, "--tls-cert", files.cert, "--tls-key", files.key)
	origin := serving(t, cmd, "normal")
	if !strings.HasPrefix(origin, "https://localhost:") {
		t.Fatalf("origin %s", origin)
	}
	pem, err := os.ReadFile(files.ca)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	client := &http.Client{Timeout: processTime, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	defer client.CloseIdleConnections()
	call := func(method, path, token string) (int, string) {
		req, err := http.NewRequest(method, origin+path, strings.NewReader(`{"subject":"Printer"}`))
		if err != nil {
			t.Fatal(err)
		}
		req.GetBody = nil
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Idempotency-Key", "the-same-key")
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		var id struct{ ID string }
		_ = json.Unmarshal(body, &id) // a problem has none
		return res.StatusCode, id.ID
	}
	type answer struct {
		Code int
		ID   string
	}
	var got []answer
	for _, c := range [][3]string{
		{"POST", "/tickets", ""}, {"POST", "/tickets", "token-of-eve"}, {"POST", "/tickets", "token-of-ann"}, {"POST", "/tickets", "token-of-bob"},
		{"POST", "/tickets", "token-of-ann"}, {"GET", "/tickets/T-1", "token-of-ann"}, {"GET", "/tickets/T-1", "token-of-bob"}, {"GET", "/tickets/T-1", ""},
	} {
		code, id := call(c[0], c[1], c[2])
		got = append(got, answer{code, id})
	}
	want := []answer{{401, ""}, {401, ""}, {201, "T-1"}, {201, "T-2"}, {200, "T-1"}, {200, "T-1"}, {404, ""}, {401, ""}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
	if runtime.GOOS != "linux" {
		return // elsewhere a process cannot be told to trust the CA
	}
	run := command(t, "run", origin+"/agentic.json", "--approve", origin, "--allow-loopback", "--yes", "--json",
		"--header-from-env", "Authorization=AUTHORIZATION", "--input", `{"subject":"Printer"}`)
	run.Env = append(run.Env, "SSL_CERT_FILE="+files.ca, "AUTHORIZATION=Bearer token-of-bob")
	code, out, diag := exitOf(t, run)
	r, found := agentic.ParseReceipt([]byte(out))
	if code != 0 || r == nil || r.Outcome != agentic.Succeeded || r.Origin != origin {
		t.Errorf("run: exit code %d, %v, stdout %q, stderr %q", code, found, out, diag)
	}
}

// With --postgres everything outlives the process, and the window is that of the
// profile.
func TestServePostgres(t *testing.T) {
	database := pgtest.Shared(t).NewDatabase(t)
	const id = "postgres-request-1"
	var first string
	t.Run("first process", func(t *testing.T) {
		origin := serveProcess(t, "normal", "--postgres", database)
		code, out, diag := exitOf(t, command(t, "run", origin+"/agentic.json", "--approve", origin, "--allow-loopback", "--yes", "--json",
			"--request-id", id, "--input", `{"subject":"Printer"}`))
		r, found := agentic.ParseReceipt([]byte(out))
		if code != 0 || r == nil || r.Outcome != agentic.Succeeded {
			t.Fatalf("run: exit code %d, %v, stdout %q, stderr %q", code, found, out, diag)
		}
		if diff := cmp.Diff(ticket.State{Posts: 1, Tickets: 1, Requests: 1, Reads: 2}, stateOf(t, origin)); diff != "" {
			t.Errorf("state (-want +got):\n%s", diff)
		}
		first = string(get(t, origin+"/requests/"+id))
	})
	origin := serveProcess(t, "normal", "--postgres", database)
	if second := string(get(t, origin+"/requests/"+id)); second != first || !strings.Contains(second, "succeeded") {
		t.Errorf("status %s, then %s", first, second)
	}
}
