// Command testbed brings the testbed of the registry-cache extension up, shows it and removes it. Each command is a
// method of kind.Testbed; this package maps flags to options, results to output and errors to exit codes, and knows
// nothing else.
//
// Progress and prose go to standard error, the answer of status to standard output. Exit codes: 0 fine, 1 failed,
// 2 wrong use, 3 the machine lacks something that the message names.
package main
