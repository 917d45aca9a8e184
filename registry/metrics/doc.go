// Package metrics lists the metrics of a cache. Those with a name of distribution's own
// pull-through mean the same as there. The package counts nothing itself.
package metrics
