// Package process marks the child processes of a testbed with an environment variable, and finds
// and ends processes that an interrupted command left running.
package process
