// Package bench measures the cost of the extension on a seed with many shoots: time, API requests,
// CPU and memory of its real binary, with a real kube-apiserver and etcd. A slow result is not an
// error. The report shows which goals of docs/operations.md are met.
//
//   - controlplane: etcd and kube-apiserver as processes, and their audit log.
//   - landscape: the objects that gardenlet writes to a seed for N shoots.
//   - daemon: a program as a background process.
//   - extension: the extension as a process, and load on its webhook.
//
// The package must not assume how the controller works: it measures requests, seconds and bytes.
package bench
