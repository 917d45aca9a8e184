// Package upstream starts the testbed's upstream registries: real distribution registries in containers on Docker's
// network of kind, HTTPS for nodes, HTTP for caches, and an access log that proves who pulled what.
//
// The containers are the only state: whoever knows the prefix of a testbed finds them again. The package must not know
// Kubernetes, the clusters, or the caches in front of it. What runs in the container is in package server, what the log
// says in package accesslog.
package upstream
