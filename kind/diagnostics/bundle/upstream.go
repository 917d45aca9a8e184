package bundle

import (
	"encoding/json"
	"io/fs"
	"net/netip"
	"path"
	"strings"

	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

// Files of an upstream, in its folder.
const (
	AccessFile = "access.jsonl"
	StateFile  = "state.txt"
)

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
	if with, err := netip.ParseAddrPort(address); err == nil {
		address = with.Addr().Unmap().String()
	}
	for _, cluster := range []Cluster{b.Shoot, b.Seed} {
		for _, node := range cluster.Nodes {
			for _, own := range node.Status.Addresses {
				if own.Address == address {
					return b.ShortName(node.Name)
				}
			}
			// The bridge of its pods has the first address of their range: what a node asks a pod of its own comes from there.
			if network, err := netip.ParsePrefix(node.Spec.PodCIDR); err == nil && network.Addr().Next().String() == address {
				return b.ShortName(node.Name)
			}
		}
	}
	return ""
}
