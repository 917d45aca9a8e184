// Package preflight checks that the host can run the testbed before anything is built or started:
// disk, memory, cgroups, inotify limits, Go. Each failure says how to fix it.
//
// The checks are functions of a Host value. The package touches the host only to read that value
// and, as root, to raise the inotify limits. It must not know Docker, kind or Kubernetes.
package preflight
