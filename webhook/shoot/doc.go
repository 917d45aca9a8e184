// Package shoot validates what Shoots configure for the extension, in the garden and offline: the
// providerConfig and the referenced Secrets. The controller uses the same functions.
//
// The package must not import the controller, or block changes that do not affect the extension.
package shoot
