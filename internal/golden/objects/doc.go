// Package objects encodes Kubernetes objects as YAML for golden files and reads objects from the
// golden files of charts.
//
// Only tests may import the package. It must work for all objects and charts.
package objects
