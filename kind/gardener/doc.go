// Package gardener installs the real parts of Gardener into the testbed's kind clusters: CRDs and
// priority classes, gardener-resource-manager, gardener-node-agent, an operating system extension,
// the control plane of a garden, and the extension under test, which gardenlet's own
// ControllerInstallation reconciler installs.
//
// Every installation is idempotent: a second call with the same input changes nothing.
//
// The package contains no code for the order of a shoot's tasks (see package gardenlet), for the
// creation of clusters and images, or for registry caches: callers pass the extension.
package gardener
