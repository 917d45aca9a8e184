// Package cli is the command line of the testbed. It maps flags to options, results to output and
// errors to exit codes. Package kind and the packages below it do the work of the commands.
//
// Each file contains a group of commands with their help texts, flags and dry runs:
//
//	testbed.go     up, down, status, doctor, export, version
//	access.go      kubeconfig, kubectl, exec, shell
//	shoot.go       shoot apply, get and gardenlet's other operations
//	pull.go        push, pull
//	develop.go     image, extension, debug
//	scenarios.go   test
//	completion.go  completion, and the suggestions for arguments
//
// fault.go and reproduce.go contain the commands with these names. command.go contains the parts
// that all commands share: finding the testbed, --dry-run and --json.
//
// Progress and messages go to standard error, answers to standard output. Exit codes: 0 success, 1
// failure, 2 usage error, 3 environment error.
package cli
