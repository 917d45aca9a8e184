// Package cache builds the Kubernetes objects of one pull-through cache in the shoot:
// configuration, certificate and CA bundle, Service, StatefulSet with its volume, NetworkPolicy,
// and what high availability and vertical autoscaling need.
//
// All functions are pure. The package talks to no API server, does not know about ManagedResources,
// Extensions or nodes, and handles one upstream at a time. It does not check the contents of
// referenced Secrets: v1alpha3.ValidateCredentials and v1alpha3.ValidateCABundle do.
package cache
