// Package preflight checks, before anything is built or started, that the host can carry the testbed: disk, memory,
// cgroups, inotify limits, Go. Each failure names its fix.
//
// The checks are functions of a Host value; reading that value, and raising the inotify limits as root, is all that
// touches the host. It must not know Docker, kind or Kubernetes.
package preflight
