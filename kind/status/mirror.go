package status

import (
	"github.com/gardener-extensions/registry-cache/kind/hostsfile"
)

// parseMirror reads what a hosts.toml makes containerd do.
func ParseMirror(upstream string, content []byte) Mirror {
	return Mirror(hostsfile.Parse(upstream, content))
}
