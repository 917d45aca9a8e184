// Package spec describes a fault as a value: its target, its kind and its options, how people write
// it, and how it is stored.
//
// It does not know how a fault is injected: that is package fault, and for the answers of an
// upstream package server.
package spec
