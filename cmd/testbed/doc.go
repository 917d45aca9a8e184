// Command testbed creates, shows, breaks and removes the testbed of the registry-cache extension.
// It maps flags to options, results to output and errors to exit codes. Package kind and the
// packages below it do the work of the commands.
//
// Progress and messages go to standard error, answers to standard output. Exit codes: 0 success, 1
// failure, 2 usage error, 3 environment error.
package main
