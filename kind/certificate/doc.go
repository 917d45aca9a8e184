// Package certificate creates two kinds of CAs. The first is the CA of a testbed: it signs the
// certificates of the upstream registries, is stored in the state folder, and the nodes trust it.
// The second is a private CA, which no client trusts.
//
// Callers decide which servers use a certificate and which nodes trust the CA.
package certificate
