// Package cli is the command line of the testbed. Each command that acts on a testbed is a method
// of kind.Testbed (reproduce: of kind/fieldbugs); this package maps flags to options, results to
// output and errors to exit codes, and knows nothing else. It is a package, and not a part of
// command testbed, so that the field bugs of kind/fieldbugs can be reproduced by the very commands
// that their page lists.
//
// Progress and prose go to standard error, answers to standard output. Exit codes: 0 fine, 1
// failed, 2 usage error, 3 the machine lacks something that the message names.
package cli
