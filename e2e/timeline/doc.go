// Package timeline records every change of the objects of a resource with a watch, so that a test
// can prove without polling that an object never existed, or in which order objects changed.
//
// The package must not depend on the meaning of the objects.
package timeline
