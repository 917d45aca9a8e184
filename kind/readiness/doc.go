// Package readiness reports whether nodes and pods are ready.
//
// It must not know where the objects come from.
package readiness
