// Package bench measures what the extension costs on a seed with many shoots: time, API requests, CPU and memory of its real
// binary, against a real kube-apiserver and etcd. Nothing is timed out, asserted or compared with a stored number: it reports,
// and says which goals of docs/scale.md are met.
//
// The packages below it, in the order in which Run uses them:
//
//   - controlplane: etcd and kube-apiserver as processes, with an audit log.
//   - auditlog: counts requests by what the API servers recorded about them.
//   - landscape: what gardenlet writes to a seed for N shoots, and a stand-in for gardener-resource-manager.
//   - extension: the extension's binary as a process, and what the kernel says about it.
//   - load: a steady stream of admission reviews.
//   - report: results, their growth, the goals; as a table and as JSON.
//   - controller: the command.
//
// It must not know how the controller works: it sees requests, seconds and bytes.
package bench
