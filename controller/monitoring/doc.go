// Package monitoring builds the objects with which a shoot's control plane monitors the caches: a
// ScrapeConfig, alerts and a dashboard.
//
// All functions are pure. The package talks to no API server and does not know how, or for which
// Shoots, the objects are deployed. It finds the pods of caches by the names of their Services and
// volumes.
//
// Prometheus's promtool tests the rules: testdata/*.test.yaml define which series raise which
// alert.
package monitoring
