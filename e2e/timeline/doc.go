// Package timeline watches a resource and records every change of its objects. So a test can prove
// without polling that an object never existed, or in which order objects changed.
//
// The package must work for every resource.
package timeline
