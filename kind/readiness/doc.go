// Package readiness reports whether nodes and pods are ready.
//
// It does not read the objects itself: callers pass them.
package readiness
