// Package monitoring builds what a shoot's control plane on the seed needs to watch the shoot's caches: what Prometheus
// scrapes, alerts, and a dashboard. The configuration of the caches goes in, objects come out.
//
// Everything here is a function of its arguments: the package talks to no API server and does not know how, or for which
// Shoots, the objects are deployed. It knows the pods of caches by the names of their Services and volumes only.
//
// The rules are tested with Prometheus's own promtool: testdata/*.test.yaml says which series raise which alert.
package monitoring
