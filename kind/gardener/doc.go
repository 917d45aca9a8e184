// Package gardener installs the real parts of Gardener into the testbed's kind clusters: CRDs and
// priority classes, gardener-resource-manager, gardener-node-agent, an operating system extension,
// and the extension under test, which gardenlet's own ControllerInstallation reconciler installs.
// On demand it also installs the admission component, from its charts, and the CRD with which the
// API server stores Shoots.
//
// Every installation is idempotent: a second call with the same input changes nothing.
//
// The package must not know the order in which gardenlet drives a shoot (package gardenlet does),
// how clusters and images are created, or anything about registry caches except the names that
// callers pass.
package gardener
