// Package outbound is what runs inside the container of the testbed's HTTP proxy: it forwards requests with an absolute
// URI, opens tunnels for CONNECT, and records both in an access log, which proves who went through it.
//
// It must not know who starts it or who uses it, and keeps nothing.
package outbound
