// Package kindtest has testbeds for tests that need no cluster: in temporary folders, on a Docker
// Engine that is faked by a script. It holds no assertions.
package kindtest
