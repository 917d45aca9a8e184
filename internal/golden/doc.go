// Package golden compares what code renders with a file below testdata that a person has read and accepted. Package objects
// below it turns Kubernetes objects into such texts, and goldens of charts into objects.
//
// For tests only. It must not know what the files are about.
package golden
