package bundle

import (
	"encoding/json"
	"io/fs"
	"net/netip"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

// Files in the folder of an upstream.
const (
	AccessFile = "access.jsonl"
	StateFile  = "state.txt"
)

// Unreadable is the prefix of the state of a container whose output cannot be read. The error
// follows.
const Unreadable = "output not readable: "

// Upstream is one upstream registry.
type Upstream struct {
	Host string
	// State is the status of its container, as the engine prints it; "" if it is unknown.
	State string
	// Records are its requests, in the order in which the responses ended. Damaged lines are skipped.
	Records accesslog.Records
}

// File returns the path of a file of the upstream in the bundle.
func (u Upstream) File(name string) string { return path.Join(UpstreamFolder, u.Host, name) }

// Running reports whether its container runs. It is true if the state is unknown.
func (u Upstream) Running() bool { return u.State == "" || strings.HasPrefix(u.State, "Up ") }

func readUpstream(files fs.FS, host string) Upstream {
	u := Upstream{Host: host}
	u.State = text(files, u.File(StateFile))
	u.Records = Parse(files, u.File(AccessFile), func(line string) (record accesslog.Record, ok bool) {
		err := json.Unmarshal([]byte(line), &record)
		return record, err == nil && record.Path != accesslog.SettlePath
	})
	return u
}

// NodeAt returns the short name of the node with an address, or "". The address may have a port.
// Requests of a node's containerd come from it, and due to NAT those of its pods too.
func (b *Bundle) NodeAt(address string) string {
	address = WithoutPort(address)
	for _, cluster := range []Cluster{b.Shoot, b.Seed} {
		for _, node := range cluster.Nodes {
			if slices.Contains(Addresses(node), address) {
				return b.ShortName(node.Name)
			}
		}
	}
	return ""
}

// WithoutPort removes the port of an IP address, if it has one.
func WithoutPort(address string) string {
	if with, err := netip.ParseAddrPort(address); err == nil {
		return with.Addr().Unmap().String()
	}
	return address
}

// Addresses returns the source addresses of a node's requests: its own addresses, and the address
// of its pod bridge, from which it reaches its own pods. The bridge has the first address of the
// pod CIDR.
func Addresses(node corev1.Node) []string {
	var all []string
	for _, own := range node.Status.Addresses {
		all = append(all, own.Address)
	}
	for _, podCIDR := range node.Spec.PodCIDRs {
		if network, err := netip.ParsePrefix(podCIDR); err == nil {
			all = append(all, network.Addr().Next().String())
		}
	}
	return all
}
