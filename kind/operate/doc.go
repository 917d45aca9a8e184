// Package operate changes the Shoot of a testbed as an operator would: each operation runs one of
// gardenlet's flows, see package gardenlet.
//
// It does not know how the extension reacts.
package operate
