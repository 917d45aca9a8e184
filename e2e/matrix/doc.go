// Package matrix contains files for `testbed up -f`, which configure other testbeds than the
// default. A comment in each file selects its scenarios. The script "run" processes all files.
package matrix
