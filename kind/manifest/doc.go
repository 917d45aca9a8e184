// Package manifest reads a user's Shoot and its Secrets from a file, and merges the Shoot with the
// testbed's Shoot. Extensions and lifecycle fields come from the file, the others from the testbed.
//
// The results depend only on the arguments. The package does not interpret any extension.
package manifest
