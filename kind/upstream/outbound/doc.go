// Package outbound runs in the container of the testbed's HTTP proxy. It forwards requests with an
// absolute URI, opens tunnels for CONNECT, and records both in an access log, which shows who used
// the proxy.
//
// It stores nothing.
package outbound
