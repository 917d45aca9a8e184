// Package examples embeds what an operator and a Shoot owner copy: the registration of the extension, by hand or by
// gardener-operator, and Shoots that use it. The testbed installs from the same files, so that they cannot rot.
package examples
