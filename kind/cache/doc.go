// Package cache finds the caches of a shoot cluster: their Services, StatefulSets and addresses.
//
// It uses only the API server of the shoot and reads nothing on nodes.
package cache
