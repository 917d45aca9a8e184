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

// Encode is the content of a credentials file.
func (c Credentials) Encode() ([]byte, error) { return json.Marshal(c) }

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

// readCredentials returns what a client has to show now. Without a file nobody is let in.
func readCredentials(path string) (Credentials, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return Credentials{}, fmt.Errorf("read credentials: %w", err)
	}
	return decode(content)
}

// decode leaves the cause out of the error, which would quote the content.
func decode(content []byte) (Credentials, error) {
	var c Credentials
	if json.Unmarshal(content, &c) != nil {
		return Credentials{}, errors.New("credentials file: not the JSON of Credentials")
	}
	if err := c.Validate(); err != nil {
		return Credentials{}, fmt.Errorf("credentials file: %w", err)
	}
	return c, nil
}

// match compares hashes, so that the time that it takes tells nothing about the content.
func (c Credentials) match(username, password string) bool {
	same := func(want []byte, got string) int {
		a, b := sha256.Sum256(want), sha256.Sum256([]byte(got))
		return subtle.ConstantTimeCompare(a[:], b[:])
	}
	return same(c.Username, username)&same(c.Password, password) == 1
}
