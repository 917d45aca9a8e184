// Package hostsfile parses a hosts.toml as containerd does and returns the hosts that a pull asks,
// in order. Callers read the file from a node.
package hostsfile
