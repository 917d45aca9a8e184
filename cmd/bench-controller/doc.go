// Command bench-controller measures what the extension costs on a seed with 10 to 3,000 shoots, see
// docs/operations.md. It prints a table, or with --json the measured values, to standard output.
//
// A missed goal is an error only with --strict, because a busy machine gives bad numbers.
package main
