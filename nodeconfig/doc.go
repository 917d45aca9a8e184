// Package nodeconfig owns everything that the extension writes on a node: the script and the
// systemd unit that make containerd pull through the caches, and the hosts.toml files that the
// script writes. Package cleaner below it reverts exactly that.
//
// Script, Unit and HostsTOML are pure functions. The script needs only bash and curl. The package
// must not know about Kubernetes, Gardener resources, or how the files get to the node.
package nodeconfig
