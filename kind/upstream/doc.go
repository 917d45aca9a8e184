// Package upstream runs the testbed's upstream registries: real distribution registries in
// containers on Docker's kind network, with HTTPS for nodes, HTTP for caches, and an access log
// that shows who pulled what.
//
// All state is in the containers, which carry the testbed's prefix in a label. The package must not
// access Kubernetes or caches. Package server runs in the containers, and package accesslog reads
// their logs.
package upstream
