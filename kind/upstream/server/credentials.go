package server

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"

	"github.com/distribution/distribution/v3/registry/auth"

	"github.com/gardener-extensions/registry-cache/kind/file"
)

// Credentials are what a protected registry requires from its clients.
type Credentials struct {
	// Username is not empty and has no colon. In basic authentication a colon ends it (RFC 7617).
	Username []byte
	Password []byte // any bytes
}

// Validate checks that basic authentication can carry the credentials. Errors do not contain them.
func (c Credentials) Validate() error {
	switch {
	case len(c.Username) == 0:
		return errors.New("user name is empty")
	case bytes.ContainsRune(c.Username, ':'):
		return errors.New("user name contains a colon, which ends it in HTTP basic authentication")
	}
	return nil
}

// EncodeCredentials returns the content of a credentials file. All credentials must be valid.
func EncodeCredentials(all ...Credentials) ([]byte, error) {
	for _, c := range all {
		if err := c.Validate(); err != nil {
			return nil, err
		}
	}
	return json.Marshal(all)
}

// ReplaceCredentials reads a credentials file, and atomically replaces the file at path with it.
// Requests that the registry has already admitted continue.
func ReplaceCredentials(path string, in io.Reader) error {
	content, err := io.ReadAll(io.LimitReader(in, 1<<20))
	if err != nil {
		return fmt.Errorf("read credentials: %w", err)
	}
	if _, err := decode(content); err != nil {
		return err
	}
	return file.Replace(path, content, 0o400)
}

func readCredentials(path string) ([]Credentials, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read credentials: %w", err)
	}
	return decode(content)
}

// decode parses a credentials file. Its errors do not wrap the JSON error, which could quote the
// content.
func decode(content []byte) ([]Credentials, error) {
	var all []Credentials
	if json.Unmarshal(content, &all) != nil {
		return nil, errors.New("credentials file: not a JSON list of Credentials")
	}
	for i, c := range all {
		if err := c.Validate(); err != nil {
			return nil, fmt.Errorf("credentials file, entry %d: %w", i, err)
		}
	}
	return all, nil
}

// match compares hashes in constant time, so that the duration reveals nothing.
func (c Credentials) match(username, password string) bool {
	same := func(want []byte, got string) int {
		a, b := sha256.Sum256(want), sha256.Sum256([]byte(got))
		return subtle.ConstantTimeCompare(a[:], b[:])
	}
	return same(c.Username, username)&same(c.Password, password) == 1
}

// accessType is the name of this access controller in distribution's configuration. The
// controller replaces distribution's "htpasswd", whose file cannot represent every user name and
// whose hashes cover only the first 72 bytes of a password.
const accessType = "testbed"

const realm = "upstream registry of the testbed"

func init() {
	if err := auth.Register(accessType, newAccess); err != nil {
		panic(err) // the name is already registered
	}
}

// access admits clients whose credentials are in a file, which it reads for every request.
type access struct{ path string }

func newAccess(options map[string]any) (auth.AccessController, error) {
	path, ok := options["path"].(string)
	if !ok {
		return nil, fmt.Errorf(`access controller %s: option "path" is missing`, accessType)
	}
	return access{path: path}, nil
}

// Authorized implements auth.AccessController.
func (a access) Authorized(r *http.Request, _ ...auth.Access) (*auth.Grant, error) {
	username, password, ok := r.BasicAuth()
	if !ok {
		return nil, challenge{auth.ErrInvalidCredential}
	}
	accepted, err := readCredentials(a.path)
	if err != nil {
		return nil, challenge{err}
	}
	if !slices.ContainsFunc(accepted, func(c Credentials) bool { return c.match(username, password) }) {
		return nil, challenge{auth.ErrAuthenticationFailure}
	}
	// Distribution logs this name, so it is not the one from the client.
	return &auth.Grant{User: auth.UserInfo{Name: "known"}}, nil
}

type challenge struct{ error }

var _ auth.Challenge = challenge{}

func (c challenge) Unwrap() error { return c.error }

// SetHeaders implements auth.Challenge.
func (challenge) SetHeaders(_ *http.Request, w http.ResponseWriter) {
	w.Header().Set("WWW-Authenticate", fmt.Sprintf("Basic realm=%q", realm))
}
