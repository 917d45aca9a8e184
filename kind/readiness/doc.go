// Package readiness reports whether nodes and pods are ready.
//
// Its functions take objects. It must not know where the objects come from.
package readiness
