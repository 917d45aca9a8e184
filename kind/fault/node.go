package fault

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
)

// NodeScript applies, ends and lists the faults of a node. Run it by bash -c.
//
//go:embed node.sh
var NodeScript string

// Way is how a node applies a fault: a KIND of NodeScript.
type Way string

// The ways. Comments describe their arguments; several values are separated by spaces.
const (
	Drop           Way = "drop"     // IP addresses
	Reject         Way = "reject"   // IP addresses
	RejectQuestion Way = "question" // the result of Question
	RejectPort     Way = "port"     // a TCP port of the node
	DelayAnswers   Way = "delay"    // the result of DelayArgument
	StopPods       Way = "stop"     // pods as <namespace>/<name>
	StopUnit       Way = "unit"     // the name of a systemd unit
	FillVolumes    Way = "full"     // volumes as <pod in kube-system>=<path in the container>
	LoseMachine    Way = "loss"     // any text that is needed when the machine joins again, see ArgumentFile
)

// ArgumentFile returns the path, on the node, of the argument of a fault.
func ArgumentFile(id string) string { return path.Join("/run/testbed-faults", id, "argument") }

// BeginArguments returns the arguments of NodeScript that apply the fault. Its duration starts
// then.
func BeginArguments(f spec.Fault, way Way, argument string) ([]string, error) {
	description, err := json.Marshal(f)
	if err != nil {
		return nil, fmt.Errorf("fault %s: %w", f.ID, err)
	}
	seconds := strconv.FormatFloat(math.Round(time.Duration(f.For).Seconds()*1000)/1000, 'f', -1, 64)
	return []string{"begin", f.ID, seconds, string(description), string(way), argument}, nil
}

// DelayArgument returns the argument of DelayAnswers: the path of testbed-delay on the node, which
// is deleted when the fault ends, the delay, the port of the server, and the IP addresses of its
// Service, which has port 443.
func DelayArgument(program string, delay time.Duration, port string, services []string) string {
	return strings.Join(append([]string{program, delay.String(), port}, services...), " ")
}

// CheckArguments returns the arguments of NodeScript that fail, with a reason, if the node cannot
// apply such a fault.
func CheckArguments(way Way, argument string) []string {
	return []string{"check", string(way), argument}
}

// EndArguments returns the arguments of NodeScript that end a fault.
func EndArguments(id string) []string { return []string{"end", id} }

// JoinArguments returns the arguments of NodeScript that restore gardener-node-agent on a lost
// machine that runs again.
func JoinArguments(id string) []string { return []string{"join", id} }

// ListArguments returns the arguments of NodeScript that list faults for ParseList and end those
// that are no longer active. No other process may begin or end faults at the same time.
func ListArguments() []string { return []string{"list"} }

// LookArguments returns the arguments of NodeScript that list faults for ParseList and change
// nothing.
func LookArguments() []string { return []string{"look"} }

// ParseList parses the output of NodeScript: one JSON description per line.
func ParseList(output string) ([]spec.Fault, error) {
	return spec.Decode([]byte("[" + strings.ReplaceAll(strings.TrimSpace(output), "\n", ",") + "]"))
}
