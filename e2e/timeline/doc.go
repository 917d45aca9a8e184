// Package timeline records every change of the objects of a resource with a watch, so that a test
// can prove "this never existed" or "this came before that" without polling.
//
// It must not know what the objects mean.
package timeline
