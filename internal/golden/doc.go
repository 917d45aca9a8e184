// Package golden compares rendered output with golden files in testdata, and converts between
// Kubernetes objects and such files.
//
// Only tests may import the package. It must work for files with any content.
package golden
