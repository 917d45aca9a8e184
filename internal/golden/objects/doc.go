// Package objects gives tests Kubernetes objects as YAML: what code renders, and what the goldens of a chart hold.
//
// For tests only. It must not know what the objects are for.
package objects
