// Package upstream runs the testbed's upstream registries: real distribution registries in
// containers on Docker's kind network, with HTTPS for nodes, HTTP for caches, and an access log
// that shows who pulled what.
//
// All state is in the containers: a testbed's prefix suffices to find them. The package must not
// know Kubernetes, the clusters, or the caches in front of it. Package server runs in the
// containers, package accesslog reads their logs.
package upstream
