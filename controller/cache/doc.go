// Package cache builds the objects of one pull-through cache in the shoot: configuration, Service, StatefulSet with its
// volume, and the NetworkPolicy that lets nodes reach it. One upstream goes in, objects come out.
//
// Everything here is a function of its arguments: the package talks to no API server, does not know about
// ManagedResources, Extensions or nodes, and never looks at another upstream.
package cache
