// Package certificate creates the testbed's CAs: one per testbed, which is kept in its state
// folder, trusted by the nodes, and signs the certificates of the upstream registries; and private
// CAs, which no client trusts.
//
// It must not know who serves with a certificate or how nodes come to trust the CA.
package certificate
