// Package shootclient caches the clients for the API servers of the shoots, because each new client
// costs a connection and a TLS handshake. The number of clients is limited. A client is dropped
// when the Secret with its kubeconfig changes.
//
// The package knows where gardenlet puts that Secret and which kinds the controller uses in a
// shoot. It does not know what for.
package shootclient
