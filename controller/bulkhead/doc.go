// Package bulkhead keeps unresponsive shoots from occupying all workers of the controller. It does
// not know what an operation does.
package bulkhead
