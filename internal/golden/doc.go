// Package golden compares what code renders with a file below testdata that a person has read and accepted.
//
// For tests only. It must not know what the files are about.
package golden
