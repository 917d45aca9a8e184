// Package bringup brings a testbed up and down: the Docker Engine, the images, both clusters, the
// upstreams, Gardener's parts, the extension and the first Shoot.
//
// Everything it does is idempotent: after an interruption Up continues, and Down removes what there
// is. It does not know what is done with a testbed afterwards.
package bringup
