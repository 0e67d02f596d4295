package ticket

import (
	"bufio"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/agentic-go/agentic"
	"github.com/agentic-go/agentic/service"
)

// Bounds of a token file.
const (
	maxTokens    = 1000
	maxTokenLine = 2048 // bytes
)

// token is one line of a token file.
type token struct {
	principal string
	digest    [sha256.Size]byte
}

// ReadTokens reads a token file and gives a Config.Principal that knows its
// tokens. A line is
//
//	PRINCIPAL SHA256-HEX
//
// with the hash of a bearer token as it is sent; a principal may have several.
// Empty lines and lines that begin with # are left out. Tokens must be random: a
// hash without salt hides nothing that can be guessed.
//
// A request needs one "Authorization: Bearer TOKEN"; anything else is 401. An
// error names a line and quotes nothing of it.
func ReadTokens(r io.Reader) (func(*http.Request) (string, error), error) {
	var known []token
	seen := map[[sha256.Size]byte]bool{}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxTokenLine)
	n := 0
	for lines.Scan() {
		n++
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		t, err := parseToken(line)
		switch {
		case err != nil:
		case t.digest == sha256.Sum256(nil):
			err = errors.New("this is the hash of no token at all")
		case seen[t.digest]:
			err = errors.New("the token is there twice")
		case len(known) == maxTokens:
			err = fmt.Errorf("there are more than %d tokens", maxTokens)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		seen[t.digest] = true
		known = append(known, t)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("after line %d: %w", n, err)
	}
	if len(known) == 0 {
		return nil, errors.New("there is no token")
	}
	return func(r *http.Request) (string, error) { return whose(known, r.Header.Values("Authorization")) }, nil
}

func parseToken(line string) (t token, err error) {
	fields := strings.Fields(line)
	if len(fields) != 2 {
		return t, errors.New("want a principal, a blank and a hash")
	}
	t.principal = fields[0]
	if len(t.principal) > agentic.MaxIDBytes || !utf8.ValidString(t.principal) || strings.ContainsFunc(t.principal, unicode.IsControl) {
		return t, fmt.Errorf("the principal is not 1 to %d bytes of UTF-8 without control characters", agentic.MaxIDBytes)
	}
	digest, err := hex.DecodeString(fields[1])
	if err != nil || len(digest) != sha256.Size {
		return t, errors.New("the hash is not 64 hexadecimal digits")
	}
	copy(t.digest[:], digest)
	return t, nil
}

// whose finds the principal of a token. It takes as long for each.
func whose(known []token, authorization []string) (principal string, err error) {
	const realm = `Bearer realm="tickets"`
	if len(authorization) == 0 {
		return "", &service.AuthError{Challenge: realm, Detail: "A bearer token is needed."}
	}
	scheme, sent, ok := strings.Cut(authorization[0], " ")
	if len(authorization) > 1 || !ok || sent == "" || !strings.EqualFold(scheme, "Bearer") {
		return "", &service.AuthError{Challenge: realm + `, error="invalid_request"`, Detail: "One header Authorization with a bearer token is needed."}
	}
	digest, found := sha256.Sum256([]byte(sent)), -1
	for i := range known {
		found = subtle.ConstantTimeSelect(subtle.ConstantTimeCompare(known[i].digest[:], digest[:]), i, found)
	}
	if found < 0 {
		return "", &service.AuthError{Challenge: realm + `, error="invalid_token"`, Detail: "The bearer token is not known."}
	}
	return known[found].principal, nil
}
