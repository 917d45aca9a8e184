// Package hostsfile parses a hosts.toml as containerd does and returns the hosts that a pull asks,
// in order. It must not know nodes or how to read their files.
package hostsfile
