// Command coredns is CoreDNS with only the plugins that kubeadm's Corefile names: the stock binary links all of them,
// among them the SDKs of three cloud providers, and takes several times as long to build.
//
// It must not know anything beyond that list; CoreDNS's own main does the rest.
package main
