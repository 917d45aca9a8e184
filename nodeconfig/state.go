package nodeconfig

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// RunDir is the unit's RuntimeDirectory: systemd creates it, and removes it when the unit stops.
	RunDir = "/run/configure-containerd-registries"
	// StateFile contains one line for each upstream of the script. The loop writes it in each round,
	// even if nothing changes.
	StateFile = RunDir + "/state"
	// StateMaxAge is the age of StateFile above which the loop counts as dead. A round takes up to 7
	// seconds, or longer if curl can only ask the caches one after the other.
	StateMaxAge = 30 * time.Second
)

// Route is the way in which a node pulls from an upstream.
type Route string

// The routes.
const (
	Mirror  Route = "mirror"
	Direct  Route = "direct"
	Foreign Route = "foreign" // by a hosts.toml that the extension did not write
	Stuck   Route = "stuck"   // the script cannot write or remove hosts.toml
)

// State is the script's report about one upstream.
type State struct {
	Upstream string `json:"upstream"`
	Route    Route  `json:"route"`
	// Reason is the endpoint and its last answer, or why hosts.toml is not as it should be.
	Reason string `json:"reason"`
}

func (s State) String() string { return string(s.Route) + ": " + s.Reason }

// NodeState is the state file of a node. The zero NodeState stands for a node without such a file.
type NodeState struct {
	Age       time.Duration
	Upstreams []State
}

// StateCommand returns the command that prints the age of StateFile in seconds, and then its
// content. Without the file it prints nothing.
func StateCommand() []string {
	const f = StateFile
	return []string{"sh", "-c", "if [ -e " + f + " ]; then echo $(($(date +%s) - $(stat -c %Y " + f + "))); cat " + f + "; fi"}
}

// ParseState parses the output of StateCommand. A line of StateFile is "<upstream> <route>
// <reason>".
func ParseState(output string) (NodeState, error) {
	if output == "" {
		return NodeState{}, nil
	}
	first, rest, _ := strings.Cut(output, "\n")
	seconds, err := strconv.Atoi(first)
	if err != nil {
		return NodeState{}, fmt.Errorf("age of the state: %w", err)
	}
	parsed := NodeState{Age: time.Duration(seconds) * time.Second}
	for line := range strings.Lines(rest) {
		words := strings.SplitN(strings.TrimSuffix(line, "\n"), " ", 3)
		if len(words) < 3 || words[0] == "" || words[2] == "" {
			return NodeState{}, fmt.Errorf("line %q of the state is not <upstream> <route> <reason>", line)
		}
		state := State{Upstream: words[0], Route: Route(words[1]), Reason: words[2]}
		if !slices.Contains([]Route{Mirror, Direct, Foreign, Stuck}, state.Route) {
			return NodeState{}, fmt.Errorf("unknown route %q in line %q of the state", state.Route, line)
		}
		parsed.Upstreams = append(parsed.Upstreams, state)
	}
	return parsed, nil
}

// Dead returns the reason why the loop counts as dead, or "".
func (s NodeState) Dead() string {
	if s.Age <= StateMaxAge {
		return ""
	}
	return fmt.Sprintf("its loop is dead: the last round was %s ago", s.Age)
}
