// Package cleaner undoes on a node what package nodeconfig did: for upstreams that lose their cache it takes them out of
// the unit and removes their hosts.toml; for a disabled extension it removes the unit, the script and every hosts.toml
// that carries our mark. It never touches a file of somebody else, and a second run changes nothing.
//
// It runs as `registry-cache clean` in a pod of the registry-cleaner DaemonSet on each node. What it needs there:
//
//   - root, because the files are root's, but no privilege and no capability;
//   - the node's /etc/containerd, /etc/systemd/system, /opt/bin (writable) and /run/systemd mounted below one directory,
//     which --root names. They may be mounted one by one: nothing is renamed from one into another.
//
// The package knows files and systemd, nothing of Kubernetes.
package cleaner
