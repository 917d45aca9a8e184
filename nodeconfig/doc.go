// Package nodeconfig defines all files that the extension writes on a node: the script and the
// systemd unit that make containerd pull through the caches, and the hosts.toml files that the
// script writes. Package nodeconfig/cleaner removes the hosts.toml files. ParseHosts, ParseUnit and
// ParseState read what is on a node.
//
// Script, Unit and the parsers are pure functions. The script's header lists its requirements. The
// package must not import Kubernetes or Gardener. Other packages bring the files to the node.
package nodeconfig
