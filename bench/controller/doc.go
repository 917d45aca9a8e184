// Command controller measures what the extension costs on a seed with 10 to 3,000 shoots, see docs/scale.md. The table goes to
// standard output, or with --json what it is made of; progress goes to standard error.
//
// A missed goal is shown and no error, unless --strict asks for exit code 1: numbers of a busy machine prove little.
package main
