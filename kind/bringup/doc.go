// Package bringup checks the machine, and creates and removes a testbed: the Docker Engine, the
// images, both clusters, the upstreams, Gardener's parts, the extension and the first Shoot.
//
// Up and Down are idempotent: after an interruption Up continues, and Down removes what exists.
// Code that uses a running testbed is in other packages.
package bringup
