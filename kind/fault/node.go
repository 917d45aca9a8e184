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

// NodeScript begins, ends and lists the faults of a node; see there. It is to be run by bash -c.
//
//go:embed node.sh
var NodeScript string

// Way is how a node brings a fault about: a kind of the NodeScript.
type Way string

// The ways, with what their argument is.
const (
	Drop           Way = "drop"     // IP addresses, with blanks between them
	Reject         Way = "reject"   // the same
	RejectQuestion Way = "question" // what Question returns
	RejectPort     Way = "port"     // a TCP port of the node itself
	DelayAnswers   Way = "delay"    // what DelayArgument returns
	StopPods       Way = "stop"     // pods, <namespace>/<name>, with blanks between them
	StopUnit       Way = "unit"     // the name of a unit
	FillVolumes    Way = "full"     // volumes of pods of kube-system, <name of the pod>=<path in it>, with blanks between them
	LoseMachine    Way = "loss"     // anything: whoever lets the machine join again finds it, see ArgumentFile
)

// ArgumentFile is where a node keeps the argument of a fault.
func ArgumentFile(id string) string { return path.Join("/run/testbed-faults", id, "argument") }

// BeginArguments are the arguments of NodeScript that begin the fault. Its time on the node begins anew.
func BeginArguments(f spec.Fault, way Way, argument string) ([]string, error) {
	description, err := json.Marshal(f)
	if err != nil {
		return nil, fmt.Errorf("fault %s: %w", f.ID, err)
	}
	seconds := strconv.FormatFloat(math.Round(time.Duration(f.For).Seconds()*1000)/1000, 'f', -1, 64)
	return []string{"begin", f.ID, seconds, string(description), string(way), argument}, nil
}

// DelayArgument is the argument of DelayAnswers: a program of package delay on the node, which is removed when the fault ends, the port of
// the server, and the IP addresses of its Service, whose port is 443.
func DelayArgument(program string, delay time.Duration, port string, services []string) string {
	return strings.Join(append([]string{program, delay.String(), port}, services...), " ")
}

// CheckArguments are the arguments of NodeScript that fail, with the reason, where the node cannot bring that about.
func CheckArguments(way Way, argument string) []string {
	return []string{"check", string(way), argument}
}

// EndArguments are the arguments of NodeScript that end a fault.
func EndArguments(id string) []string { return []string{"end", id} }

// JoinArguments are the arguments of NodeScript that give a machine that was lost, and runs again, its gardener-node-agent.
func JoinArguments(id string) []string { return []string{"join", id} }

// ListArguments are the arguments of NodeScript whose output ParseList reads; what does not hold any more is ended. Nobody else may
// begin or end faults meanwhile.
func ListArguments() []string { return []string{"list"} }

// LookArguments are ListArguments for whoever only looks: nothing is changed.
func LookArguments() []string { return []string{"look"} }

// ParseList reads what NodeScript lists: one description a line.
func ParseList(output string) ([]spec.Fault, error) {
	return spec.Decode([]byte("[" + strings.ReplaceAll(strings.TrimSpace(output), "\n", ",") + "]"))
}
