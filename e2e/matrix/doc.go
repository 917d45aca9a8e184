// Package matrix contains files for `testbed up -f`, each for a testbed that differs from the
// default. A comment in each file selects the scenarios. The script "run" processes all files, or,
// for `make e2e-versions`, those in the folder versions.
package matrix
