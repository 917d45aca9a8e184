// Package certificate creates two kinds of CAs. A testbed has one CA that signs the certificates of
// its upstream registries. It is stored in the state folder, and the nodes trust it. No client
// trusts a private CA.
//
// The package must not know which servers use a certificate or why nodes trust the CA.
package certificate
