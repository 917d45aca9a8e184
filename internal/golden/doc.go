// Package golden compares rendered output with golden files in testdata. Package objects below it
// converts between Kubernetes objects and such files.
//
// It is for tests only and must not depend on the content of the files.
package golden
