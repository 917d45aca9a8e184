// Package registries records how pulls through a cache went for the profiles of known registries,
// and renders docs/registries.md.
package registries
