// Package v1alpha3 is the API of the registry-cache extension: what a Shoot owner writes (RegistryConfig) and what the
// extension answers (RegistryStatus), with strict decoding, defaults and validation.
//
// Field for field it is JSON compatible with v1alpha3 of gardener-extension-registry-cache, so that Shoots written for
// that extension work unchanged; caBundleSecretReferenceName and proxy.noProxy are additions. An unknown field is refused
// by name, never ignored.
//
// Everything in here is a function of values. The package imports nothing of this repository and must not know about
// clusters, nodes or the objects that the controller deploys.
//
// +k8s:deepcopy-gen=package
// +groupName=registry.extensions.gardener.cloud
//
//go:generate go run k8s.io/code-generator/cmd/deepcopy-gen@v0.36.2 --output-file zz_generated.deepcopy.go .
//go:generate env UPDATE_GOLDEN=1 go test -run TestReference .
package v1alpha3
