// Package hostsfile reads a hosts.toml as containerd does: which hosts a pull asks, in which order.
//
// It parses file content. It must not know nodes, or how to read a file from one.
package hostsfile
