// Package operate changes the Shoot of a testbed like an operator. Each operation runs one of
// gardenlet's flows, see package gardenlet.
//
// It must not contain checks of how the extension reacts.
package operate
