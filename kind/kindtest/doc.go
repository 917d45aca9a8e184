// Package kindtest creates testbeds for tests that need no cluster. The testbeds use temporary
// folders and a script instead of the docker command. The package must not contain assertions.
package kindtest
