// Package matrix holds testbeds other than the default one, each a file for `testbed up -f` with
// the scenarios that run on it, and the script that runs them all. Its tests check every file.
package matrix
