// Package gardener installs the parts of Gardener that the testbed runs for real into its two kind clusters: the custom
// resource definitions and priority classes, gardener-resource-manager, gardener-node-agent, an operating system
// extension, and the extension under test, the last one by gardenlet's own ControllerInstallation reconciler. On demand the
// admission, by its charts, and what its API server needs to store Shoots.
//
// Every installation is idempotent: a second call with the same input changes nothing.
//
// It must not know the order in which gardenlet drives a shoot (package gardenlet does), how clusters and images come
// into being, or anything about registry caches beyond the names that the caller hands in.
package gardener
