// Command nodeexec-agent runs on the testbed's nodes. It runs the commands that package nodeexec
// requests on its standard input, and ends with this input.
package main
