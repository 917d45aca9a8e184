// Command nodeexec-agent runs on the testbed's nodes. The agent runs the commands that package
// nodeexec requests through the agent's standard input, and ends with this input.
package main
