// Package nodeconfig owns everything that lands on a node: the script and the systemd unit which tell containerd to pull
// through the caches, and the hosts.toml files that the script writes. Package cleaner below it undoes exactly that.
//
// Script, Unit and HostsTOML are functions of values; the script itself is plain bash and curl. The package must not
// know about Kubernetes, Gardener resources or how the files get to the node.
package nodeconfig
