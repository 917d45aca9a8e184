// Package shootclient caches the clients for the API servers of the shoots, because each new client
// costs a connection and a TLS handshake. The number of clients is limited. A client is dropped
// when the Secret with its kubeconfig changes.
//
// A client supports only the kinds that the controller uses in a shoot.
package shootclient
