// Package certificate is the testbed's certificate authority: one per testbed, kept in its state folder, trusted by the
// nodes, and the issuer of the upstream registries' certificates.
//
// It must not know who serves with a certificate or how nodes come to trust the authority.
package certificate
