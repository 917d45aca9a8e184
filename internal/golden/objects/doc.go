// Package objects encodes Kubernetes objects as YAML for golden files and reads objects from the
// golden files of charts.
//
// It is for tests only and must not depend on what the objects are used for.
package objects
