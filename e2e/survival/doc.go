// Package survival proves that the testbed survives killed commands, a Docker Engine that dies or
// restarts between commands, and full disks, and that `testbed down` removes everything.
//
// The script "machine" runs the tests in separate namespaces, so everything that is new after
// `testbed down` was left by the testbed. The package may rely only on the command line, the engine
// and the names of the testbed's containers and files.
package survival
