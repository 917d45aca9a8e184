// Package monitoring builds the objects with which a shoot's control plane monitors the caches: a
// ScrapeConfig, alerts and a dashboard.
//
// All functions are pure. The caller decides for which Shoots it deploys the objects, and how. The
// ScrapeConfig finds the pods of caches by the names of their Services and volumes.
//
// Prometheus's promtool tests the rules: testdata/*.test.yaml define which series raise which
// alert.
package monitoring
