// Package manifest reads a user's Shoot and its Secrets from a file, and merges it with the
// testbed's Shoot: extensions and lifecycle come from the file, everything else from the testbed.
//
// Both are functions of values. The package must not know which testbed it is, and does not
// interpret any extension.
package manifest
