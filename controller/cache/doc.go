// Package cache builds the objects of one pull-through cache in the shoot: configuration, certificate and authorities,
// Service, StatefulSet with its volumes, the NetworkPolicy that lets nodes reach it, and what high availability and
// vertical autoscaling need. One upstream goes in, objects come out.
//
// Everything here is a function of its arguments: the package talks to no API server, does not know about
// ManagedResources, Extensions or nodes, and never looks at another upstream. It takes the contents of referenced Secrets
// as they are: v1alpha3.ValidateCredentials and v1alpha3.ValidateCABundle say what is allowed in them.
package cache
