// Package cli is the command line of the testbed. It maps flags to options, results to output and
// errors to exit codes, and knows nothing else: what a command does is in package kind and below.
//
// Each file holds a group of commands with their help texts, flags and dry runs:
//
//	testbed.go     up, down, status, doctor, version
//	access.go      kubeconfig, kubectl, exec, shell
//	shoot.go       shoot apply, get and gardenlet's other operations
//	pull.go        push, pull
//	look.go        logs, trace, export
//	develop.go     image, extension, debug
//	scenarios.go   test
//	mutate.go      mutate
//	completion.go  completion, and the names that arguments are completed with
//
// fault.go, reproduce.go and snapshot.go have the commands of that name. command.go has what all
// commands share: finding the testbed, --dry-run and --json.
//
// The package is not part of command testbed, so that field bugs are reproduced by the very
// commands that their page lists. Progress and messages go to standard error, answers to standard
// output. Exit codes: 0 success, 1 failure, 2 usage error, 3 environment error.
package cli
