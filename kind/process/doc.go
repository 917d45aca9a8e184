// Package process marks the child processes of a testbed with an environment variable, and finds
// and ends those that an interrupted command left behind.
package process
