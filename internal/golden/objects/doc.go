// Package objects encodes Kubernetes objects as YAML for golden files and reads objects from the
// golden files of charts.
//
// It is for tests only and must not depend on the purpose of the objects.
package objects
