// Package examples embeds the manifests that operators and Shoot owners copy: the registration of
// the extension, by hand or with gardener-operator, and Shoots that use it. The testbed installs
// from the same files, so they stay correct.
package examples
