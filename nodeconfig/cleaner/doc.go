// Package cleaner reverts what the script of package nodeconfig did on a node. It removes some or
// all upstreams from the unit and removes their hosts.toml. It never changes a file that the
// extension did not write, except a hosts.toml of gardener-node-agent for a removed cache. A second
// run changes nothing.
//
// Its program is `registry-cache clean`, in a pod of the DaemonSet registry-cleaner. Package
// controller/cleaner builds the DaemonSet, and controller/clean.go deploys it. The pod needs:
//
//   - user root, because root owns the files, but neither privileged mode nor capabilities;
//   - the node's /etc/containerd, /etc/systemd/system (both writable) and /run/systemd, mounted
//     below the directory --root. They may be separate mounts: no file is moved between them.
//
// The package must not depend on Kubernetes.
package cleaner
