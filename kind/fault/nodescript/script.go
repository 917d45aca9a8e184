package nodescript

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
)

// Script applies, ends and lists the faults of a node. Run it with bash -c.
//
//go:embed node.sh
var Script string

// Method is how a node applies a fault: the argument KIND of Script.
type Method string

// The methods. Each comment describes the argument; spaces separate several values.
const (
	Drop         Method = "drop"     // IP addresses
	Reject       Method = "reject"   // IP addresses
	RejectDNS    Method = "question" // the result of DNSQuestion
	RejectPort   Method = "port"     // a TCP port of the node
	DelayAnswers Method = "delay"    // the result of DelayArgument
	// AnswerForCache has the result of AnswerArgument.
	AnswerForCache Method = "answer"
	StopPods       Method = "stop" // pods as <namespace>/<name>
	StopUnit       Method = "unit" // the name of a systemd unit
	FillVolumes    Method = "full" // volumes as <pod in kube-system>=<path in the container>
	LoseMachine    Method = "loss" // the labels of the Node as JSON, see ArgumentFile
)

// ArgumentFile returns the path of the file with the argument of a fault on a node.
func ArgumentFile(id string) string { return path.Join("/run/testbed-faults", id, "argument") }

// Begin returns the arguments with which Script applies the fault and starts its duration.
func Begin(f spec.Fault, method Method, argument string) ([]string, error) {
	description, err := json.Marshal(f)
	if err != nil {
		return nil, fmt.Errorf("fault %s: %w", f.ID, err)
	}
	seconds := strconv.FormatFloat(math.Round(time.Duration(f.For).Seconds()*1000)/1000, 'f', -1, 64)
	return []string{"begin", f.ID, seconds, string(description), string(method), argument}, nil
}

// DelayArgument returns the argument of DelayAnswers: the path of testbed-delay on the node (a file
// that is deleted with the fault), the delay, the server's port, and the IP addresses of its
// Service (port 443).
func DelayArgument(program string, delay time.Duration, port string, services []string) string {
	return strings.Join(append([]string{program, delay.String(), port}, services...), " ")
}

// AnswerArgument returns the argument of AnswerForCache: the path of testbed-answer on the node (a
// file that is deleted with the fault), the status, and the IP addresses of the cache (ports 5000
// and 5001).
func AnswerArgument(program string, status int, addresses []string) string {
	return strings.Join(append([]string{program, strconv.Itoa(status)}, addresses...), " ")
}

// Check returns the arguments with which Script checks whether the node can apply the method.
func Check(method Method, argument string) []string {
	return []string{"check", string(method), argument}
}

// End returns the arguments with which Script ends a fault.
func End(id string) []string { return []string{"end", id} }

// Join returns the arguments with which Script restores gardener-node-agent after a machine loss.
func Join(id string) []string { return []string{"join", id} }

// List returns the arguments that make Script list the active faults, and end inactive ones. Parse
// reads its output. No other process may change faults at the same time.
func List() []string { return []string{"list"} }

// Look returns the arguments that make Script list the active faults, without changing anything.
// Parse reads its output.
func Look() []string { return []string{"look"} }

// Parse parses the output of Script: one JSON description per line.
func Parse(output string) ([]spec.Fault, error) {
	return spec.Decode([]byte("[" + strings.ReplaceAll(strings.TrimSpace(output), "\n", ",") + "]"))
}

// The sizes in bytes of the headers before a DNS question: UDP (RFC 768) and DNS (RFC 1035, 4.1.1).
const (
	udpHeader, dnsHeader = 8, 12
	// chunk is the number of bytes that one nft expression compares.
	chunk = 16
)

// DNSQuestion returns nft expressions that match a UDP packet whose first DNS question is for this
// name. They match any query type, and are case-sensitive.
func DNSQuestion(host string) (string, error) {
	name, err := dnsmessage.NewName(strings.TrimSuffix(host, ".") + ".")
	if err != nil {
		return "", fmt.Errorf("name %q: %w", host, err)
	}
	question := dnsmessage.Question{Name: name, Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET}
	message, err := (&dnsmessage.Message{Questions: []dnsmessage.Question{question}}).Pack()
	if err != nil {
		return "", fmt.Errorf("name %q: %w", host, err)
	}
	const typeAndClass = 2 * 2
	wire := message[dnsHeader : len(message)-typeAndClass]
	var expressions []string
	offset := udpHeader + dnsHeader
	for part := range slices.Chunk(wire, chunk) {
		expressions = append(expressions, fmt.Sprintf("@th,%d,%d 0x%x", 8*offset, 8*len(part), part))
		offset += len(part)
	}
	return strings.Join(expressions, " "), nil
}
