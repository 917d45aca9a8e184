// Package nodeexec runs many commands on a machine through one long-lived agent program, instead of
// one `docker exec` with all its processes for each command.
//
// Agent and client speak SSH over the agent's standard input and output: one session for each
// command, with SSH's streams and exit status. The command line is the only difference to a usual
// SSH server: it has the arguments separated by NUL, and no shell interprets it.
//
// The package must not know Docker, kind or what the commands do. It is linked into the agent, so
// it imports little.
package nodeexec
