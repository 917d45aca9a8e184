// Package cache finds the caches of a shoot cluster: their Services, StatefulSets and addresses.
//
// It knows the shoot only by its API server, and reads nothing on nodes.
package cache
