// Package controller reconciles Extensions of type registry-cache. It deploys the caches into the
// shoot, cleans the nodes when caches are removed, and reports the endpoints in the providerStatus.
// The webhook passes the endpoints on to the nodes.
//
// The package deploys with ManagedResources, and reads Services, nodes and the cleaner's pods in
// the shoot. Package volume does what a ManagedResource cannot: it grows claims, and
// deletes claims and pods that cannot be used.
//
// The content of the objects is up to packages cache and cleaner. Files on nodes are up to package
// nodeconfig.
package controller
