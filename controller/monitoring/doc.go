// Package monitoring builds the objects with which a shoot's control plane monitors the caches: a
// ScrapeConfig, alerts and a dashboard.
//
// All functions are pure. The caller decides for which Shoots it deploys the objects, and how.
// The objects find pods by the names of their Services, and volumes by the names of their claims.
//
// Prometheus's promtool tests the rules: testdata/*.test.yaml define which series raise which
// alert.
package monitoring
