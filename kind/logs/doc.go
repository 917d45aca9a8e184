// Package logs merges the logs of several places into one: lines of one shape, in the order of time, or as they come.
//
// Where a log comes from is a function that opens it; the package must not know clusters, nodes or containers.
package logs
