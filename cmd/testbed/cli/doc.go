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
//	mutate.go      mutate
//	completion.go  completion, and the suggestions for arguments
//
// fault.go and reproduce.go contain the commands with these names. command.go contains the parts
// that all commands share: finding the testbed, --dry-run and --json.
//
// The package is separate from command testbed, so that the e2e tests can also run the commands of
// field bugs. Progress and messages go to standard error, answers to standard output. Exit codes: 0
// success, 1 failure, 2 usage error, 3 environment error.
package cli
