// Package controller reconciles Extensions of type registry-cache. It deploys the caches into the
// shoot, cleans the nodes when caches are removed, and reports the endpoints in the providerStatus.
// The webhook passes them on to the nodes.
//
// It deploys with ManagedResources, and reads Services, nodes and the cleaner's pods in the shoot.
// Package volume does what a ManagedResource cannot: it grows claims, releases their StatefulSets,
// and deletes claims and pods that cannot be used.
//
// It must not know what the objects look like (packages cache and cleaner) or what is on the nodes
// (package nodeconfig).
package controller
