// Package bench measures what the extension costs on a seed with many shoots: time, API requests,
// CPU and memory of its real binary, against a real kube-apiserver and etcd. It only reports: no
// time is asserted. The report says which goals of docs/scale.md are met.
//
//   - controlplane: etcd and kube-apiserver as processes, and their audit log.
//   - landscape: what gardenlet writes to a seed for N shoots.
//   - extension: the extension as a process, and load on its webhook.
//
// It must not know how the controller works: it sees requests, seconds and bytes.
package bench
