// Package nodeexec runs many commands on a machine through one long-lived agent program. This
// avoids a `docker exec`, with all its processes, for each command.
//
// Agent and client speak SSH over the agent's standard input and output: one session for each
// command, with SSH's streams and exit status. There is one difference from a usual SSH server: NUL
// separates the arguments in the command line, and no shell interprets it.
//
// Nothing in the package is specific to Docker or kind. The package is linked into the agent, so it
// imports little.
package nodeexec
