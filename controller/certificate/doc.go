// Package certificate issues the server certificates of caches with http.tls. Gardener's secrets
// manager stores the CA and the certificates in Secrets of the shoot's namespace in the seed,
// rotates the CA and renews certificates.
//
// The package does not deploy certificates to caches, or the CA bundle to nodes.
package certificate
