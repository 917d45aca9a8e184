// Package nodeconfig defines all files that the extension writes on a node: the script and the
// systemd unit that make containerd pull through the caches, and the hosts.toml files that the
// script writes. Package nodeconfig/cleaner removes them. ParseHosts, ParseUnit and ParseState read
// what is on a node.
//
// Script, Unit and the parsers are pure functions. The script says what it needs on a
// node. The package must not import Kubernetes or Gardener. How the files get to the node is up to
// other packages.
package nodeconfig
