// Package preflight checks, before anything is built or started, that the host can run the testbed:
// disk, memory and inotify limits. Each failure has a fix.
//
// The checks are functions of a Host value. The package reads that value from the host. As root it
// also raises the inotify limits. It must not call Docker, kind or Kubernetes.
package preflight
