// Package examples embeds what an operator and a Shoot owner copy: the registration of the extension and Shoots that use
// it. The testbed installs from the same files, so that they cannot rot.
package examples
