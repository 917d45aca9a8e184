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

// Files of an upstream, in its folder.
const (
	AccessFile = "access.jsonl"
	StateFile  = "state.txt"
)

// Unreadable begins the state of a container that could not be read, for the reason that follows.
const Unreadable = "it cannot be read: "

// Upstream is one upstream registry.
type Upstream struct {
	Host string
	// State is what the engine says of its container, "" if that is not known.
	State string
	// Records are what it was asked, in the order in which answers ended. Lines that are no records are left out.
	Records accesslog.Records
}

// File is the path of one of its files in the bundle.
func (u Upstream) File(name string) string { return path.Join(UpstreamFolder, u.Host, name) }

// Running says whether its container runs, or that it is not known that it does not.
func (u Upstream) Running() bool { return u.State == "" || strings.HasPrefix(u.State, "Up ") }

func readUpstream(files fs.FS, host string) Upstream {
	u := Upstream{Host: host}
	u.State = text(files, u.File(StateFile))
	content, err := fs.ReadFile(files, u.File(AccessFile))
	if err != nil {
		return u
	}
	for line := range strings.Lines(string(content)) {
		var record accesslog.Record
		if json.Unmarshal([]byte(line), &record) == nil && record.Path != accesslog.SettlePath {
			u.Records = append(u.Records, record)
		}
	}
	return u
}

// NodeAt returns the short name of the node with that address, which requests of its containerd and, by address translation,
// of its pods come from; "" for another one. The address may have a port.
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

// WithoutPort returns the IP address of an address with or without a port.
func WithoutPort(address string) string {
	if with, err := netip.ParseAddrPort(address); err == nil {
		return with.Addr().Unmap().String()
	}
	return address
}

// Addresses are those that a node asks from: its own, and that of the bridge of its pods, which is the first of their range and
// what it asks pods of its own from.
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
