// Package certificate issues the server certificates of caches with http.tls. Their authority, its rotation and the
// renewal of certificates are those of Gardener's secrets manager, whose Secrets lie in the shoot's namespace of the seed.
//
// It does not know how a certificate reaches a cache, nor how the authority reaches a node.
package certificate
