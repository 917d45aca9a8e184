// Package registry runs distribution v3 as a library: one registry, configured by distribution's own configuration file,
// so that a stock distribution image works in its place. It adds what a pod needs: it ends when its context does, it
// reports errors where distribution panics or exits, it starts while the upstream does not answer, it has nothing stored
// that is damaged, it brings the public certificate authorities, it counts the answers of the upstream, and it links the
// filesystem and inmemory drivers only.
//
// Distribution keeps state in globals (log settings, health checks, metrics, the default transport), so Serve runs once
// per process.
// The package knows nothing of Kubernetes, Gardener or this extension.
package registry
