// Package controller reconciles Extension resources of type registry-cache: it deploys the caches into the shoot, cleans
// the nodes when caches go, and reports the endpoints in the providerStatus, from which the webhook tells the nodes.
//
// It acts by ManagedResources, and reads Services, nodes and the cleaner's pods of the shoot. What no ManagedResource can do
// there is left to package volume: it grows claims, releases their StatefulSets, and deletes claims and pods that cannot be used.
// What the objects look like is known to the packages cache and cleaner below it, what lies on the nodes to package
// nodeconfig.
package controller
