// Package nodeless proves claims that need no node: what the extension writes, reports and refuses.
// Its scenarios work as those of package e2e do, but take seconds of CPU instead of minutes.
//
// These parts are real: two API servers with etcd, the extension, gardener-resource-manager, and
// kube-controller-manager with its controllers for namespaces, StatefulSets, DaemonSets, volume
// claims and garbage collection. They run as processes on this machine. The operating system
// extension of the testbed and gardenlet's flows (package kind/gardenlet, without machines) run in
// the test. One part is missing: no kubelet runs pods. Instead, the type deployments starts
// gardener-resource-manager as a process and reports its Deployment as available. Pods of caches
// stay pending.
//
// Each scenario uses its own shoot. One of the two API servers is the shoot's cluster, and no other
// shoot uses it meanwhile.
//
//	go test -count=1 -tags e2e ./e2e/nodeless -run TestScenarios/bad-config
//
// Without -count=1, go test can repeat an old result, because the test builds the programs itself.
//
// The package must not use a container engine.
package nodeless
