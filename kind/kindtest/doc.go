// Package kindtest creates testbeds for tests that need no cluster. They use temporary folders and
// a script that replaces the docker command. The package must not contain assertions.
package kindtest
