// Package kindtest creates testbeds for tests that need no cluster. They have temporary folders and
// a script that replaces the docker command. It must not contain assertions.
package kindtest
