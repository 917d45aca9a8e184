package nodestate

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

// Command prints the age of the state file in seconds, and then its content. Without a state file
// it prints nothing.
func Command() []string {
	const f = nodeconfig.StateFile
	return []string{"sh", "-c", "if [ -e " + f + " ]; then echo $(($(date +%s) - $(stat -c %Y " + f + "))); cat " + f + "; fi"}
}

// State is the state file of a node. The zero State stands for a node without such a file.
type State struct {
	Age      time.Duration
	Upstream []nodeconfig.State
}

// Parse parses the output of Command.
func Parse(text string) (State, error) {
	if text == "" {
		return State{}, nil
	}
	first, rest, _ := strings.Cut(text, "\n")
	seconds, err := strconv.Atoi(first)
	if err != nil {
		return State{}, fmt.Errorf("age of the state: %w", err)
	}
	upstreams, err := nodeconfig.ParseState(rest)
	return State{time.Duration(seconds) * time.Second, upstreams}, err
}

// Dead says why the loop does not run, or returns "".
func (s State) Dead() string {
	if s.Age <= nodeconfig.StateMaxAge {
		return ""
	}
	return fmt.Sprintf("its loop is dead: the last round was %s ago", s.Age)
}
