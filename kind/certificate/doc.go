// Package certificate makes the testbed's certificate authorities: one per testbed, kept in its state folder, trusted by
// the nodes, and the issuer of the upstream registries' certificates; and private ones, which nobody trusts.
//
// It must not know who serves with a certificate or how nodes come to trust the authority.
package certificate
