// Package kindtest has testbeds for tests that need no cluster: in temporary folders, with a script
// as the Docker Engine. It must not contain assertions.
package kindtest
