// Package shoot validates what Shoots configure for the extension, in the garden and offline. It
// validates the providerConfig with the functions that the controller uses, and the Secrets that it
// refers to.
//
// It must not know what the controller does with a config. It must not block changes of a Shoot
// that do not affect the extension.
package shoot
