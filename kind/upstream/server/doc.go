// Package server is what runs inside an upstream container: a real distribution registry that stores files, behind an
// access log, on an HTTP and an HTTPS port.
//
// It must not know who starts it or who pulls from it; it is linked into a small static binary and therefore imports no
// container engine and no Kubernetes client.
package server
