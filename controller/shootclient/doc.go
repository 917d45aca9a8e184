// Package shootclient holds the clients for the API servers of the shoots, so that a reconciliation makes none anew: a
// client has a connection, and a TLS handshake, of its own. They are bounded in number and dropped when the Secret with
// the access changes.
//
// It knows where gardenlet puts that Secret and which kinds the controller looks at in a shoot. What it is for it does
// not know.
package shootclient
