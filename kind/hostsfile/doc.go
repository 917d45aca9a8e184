// Package hostsfile reads a hosts.toml as containerd does: whom a pull asks, in which order.
//
// It is a function of the file's content. It must not know nodes, or how the file is read from one.
package hostsfile
