// Package manifest reads a user's Shoot and its Secrets from a file, and merges it with the
// testbed's Shoot: extensions and lifecycle come from the file, everything else from the testbed.
//
// The results depend only on the arguments. The package must not know which testbed uses it, and
// does not interpret any extension.
package manifest
