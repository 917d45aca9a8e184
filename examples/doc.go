// Package examples embeds the manifests that operators and Shoot owners copy: the registration of
// the extension, with or without gardener-operator, and Shoots that use it. The testbed installs
// the extension from the same files, which proves that they work.
package examples
