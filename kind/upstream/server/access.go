package server

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/distribution/distribution/v3/registry/auth"
)

// accessType is the name of this access controller in distribution's configuration. It replaces
// distribution's "htpasswd", whose file cannot represent every user name and whose hashes cover
// only the first 72 bytes of a password.
const accessType = "testbed"

const realm = "upstream registry of the testbed"

func init() {
	if err := auth.Register(accessType, newAccess); err != nil {
		panic(err) // the name is already registered
	}
}

// access admits clients with credentials in a file, which it reads for every request.
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
	// Distribution logs the user name.
	return &auth.Grant{User: auth.UserInfo{Name: "known"}}, nil
}

// challenge requests basic authentication.
type challenge struct{ cause error }

var _ auth.Challenge = challenge{}

func (c challenge) Error() string { return c.cause.Error() }
func (c challenge) Unwrap() error { return c.cause }

// SetHeaders implements auth.Challenge.
func (challenge) SetHeaders(_ *http.Request, w http.ResponseWriter) {
	w.Header().Set("WWW-Authenticate", fmt.Sprintf("Basic realm=%q", realm))
}
