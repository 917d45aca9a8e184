// Package certificate issues the server certificates of caches with http.tls. Gardener's secrets
// manager keeps the CA, rotates it and renews certificates. Its Secrets are in the shoot's
// namespace of the seed.
//
// The package does not know how a certificate reaches a cache or how the CA bundle reaches a node.
package certificate
