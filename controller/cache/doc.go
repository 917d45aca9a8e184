// Package cache builds the Kubernetes objects of one pull-through cache in the shoot:
// configuration, certificate and CA bundle, Service, StatefulSet with its volume, NetworkPolicy,
// and what high availability and vertical autoscaling need.
//
// All functions are pure. ManagedResources, Extensions and nodes are up to other packages. The
// package does not check the content of referenced Secrets, see v1alpha3.ValidateCredentials and
// v1alpha3.ValidateCABundle.
package cache
