// Command nodeexec-agent runs on the testbed's nodes. The agent runs the commands that package
// nodeexec requests through the agent's standard input, and exits when this input ends.
package main

import (
	"fmt"
	"os"

	"github.com/gardener-extensions/registry-cache/kind/nodeexec"
)

func main() {
	if err := nodeexec.Serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
