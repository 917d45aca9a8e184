// Package bulkhead keeps unresponsive shoots from occupying all workers of the controller. It is
// independent of what the operations do.
package bulkhead
