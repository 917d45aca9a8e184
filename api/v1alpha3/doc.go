// Package v1alpha3 is the API of the registry-cache extension: what a Shoot owner writes
// (RegistryConfig), what the extension reports (RegistryStatus) and what it stores for later
// reconciliations (State), with strict decoding, defaults and validation. It also defines the names
// and ports that several packages share.
//
// The API is JSON compatible with v1alpha3 of gardener/gardener-extension-registry-cache, so that
// Shoots written for it work unchanged. caBundleSecretReferenceName and proxy.noProxy are
// additions. Unknown fields are rejected.
//
// Functions use only their arguments. The package imports no other package of this repository.
//
// +k8s:deepcopy-gen=package
// +groupName=registry.extensions.gardener.cloud
//
//go:generate go run k8s.io/code-generator/cmd/deepcopy-gen@v0.36.4 --output-file zz_generated.deepcopy.go .
package v1alpha3
