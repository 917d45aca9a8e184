package kind

import "github.com/gardener-extensions/registry-cache/kind/hostsfile"

// parseMirror reads what a hosts.toml makes containerd do.
func parseMirror(upstream string, content []byte) MirrorStatus {
	return MirrorStatus(hostsfile.Parse(upstream, content))
}
