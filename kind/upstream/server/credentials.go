package server

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/gardener-extensions/registry-cache/kind/file"
)

// Credentials are what a protected registry asks its clients for.
type Credentials struct {
	// Username is any bytes but a colon: HTTP basic authentication (RFC 7617) ends it there. It is not empty.
	Username []byte
	// Password is any bytes.
	Password []byte
}

// Validate says whether basic authentication can carry the credentials. The error does not contain them.
func (c Credentials) Validate() error {
	switch {
	case len(c.Username) == 0:
		return errors.New("user name is empty")
	case bytes.ContainsRune(c.Username, ':'):
		return errors.New("user name contains a colon, which ends it in HTTP basic authentication")
	}
	return nil
}

// EncodeCredentials returns the content of a credentials file, in which a client may show any of these.
func EncodeCredentials(all ...Credentials) ([]byte, error) { return json.Marshal(all) }

// ReplaceCredentials reads a credentials file from in and puts it in place of the one at path. A registry that runs sees
// the old or the new one, never half of it; requests that it has admitted already go on.
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

// readCredentials returns what a client may show now. Without a file nobody is let in.
func readCredentials(path string) ([]Credentials, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read credentials: %w", err)
	}
	return decode(content)
}

// decode leaves the cause out of the error, which would quote the content.
func decode(content []byte) ([]Credentials, error) {
	var all []Credentials
	if json.Unmarshal(content, &all) != nil {
		return nil, errors.New("credentials file: not the JSON of a list of Credentials")
	}
	for i, c := range all {
		if err := c.Validate(); err != nil {
			return nil, fmt.Errorf("credentials file, entry %d: %w", i, err)
		}
	}
	return all, nil
}

// match compares hashes, so that the time that it takes tells nothing about the content.
func (c Credentials) match(username, password string) bool {
	same := func(want []byte, got string) int {
		a, b := sha256.Sum256(want), sha256.Sum256([]byte(got))
		return subtle.ConstantTimeCompare(a[:], b[:])
	}
	return same(c.Username, username)&same(c.Password, password) == 1
}
