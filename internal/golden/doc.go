// Package golden compares rendered output with golden files in testdata. Package objects below it
// converts between Kubernetes objects and such files.
//
// Only tests may import the package. It must work for files with any content.
package golden
