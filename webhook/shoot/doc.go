// Package shoot validates what Shoots configure for the extension, in the garden and offline. It
// validates the providerConfig, with the controller's functions, and the referenced Secrets.
//
// It must not depend on the controller, or block changes that do not affect the extension.
package shoot
