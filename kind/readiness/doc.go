// Package readiness tells whether nodes and pods say of themselves that they are ready.
//
// It is made of functions of objects. It must not know where these come from.
package readiness
