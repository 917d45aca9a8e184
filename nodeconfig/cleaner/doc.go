// Package cleaner undoes on a node what the script of package nodeconfig did: it takes upstreams that lose their cache, or
// all of them, out of the unit and removes their hosts.toml. It never touches a file of somebody else, and a second run
// changes nothing.
//
// It runs as `registry-cache clean` in a pod of the registry-cleaner DaemonSet on each node. What it needs there:
//
//   - root, because the files are root's, but no privilege and no capability;
//   - the node's /etc/containerd, /etc/systemd/system (writable) and /run/systemd mounted below one directory, which --root
//     names. They may be mounted one by one: nothing is renamed from one into another.
//
// The package knows files and systemd, nothing of Kubernetes.
package cleaner
