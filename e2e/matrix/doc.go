// Package matrix has configurations of testbeds other than the default, as files for `testbed up
// -f`. A comment in each file selects the scenarios that run on it. The script run runs them all.
package matrix
