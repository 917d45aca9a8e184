// Package operate changes the Shoot of a testbed as an operator does, and reads a user's Shoot from
// a file. Each operation runs one of gardenlet's flows (see package gardenlet).
//
// The package must not contain checks of how the extension reacts.
package operate
