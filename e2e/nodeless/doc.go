// Package nodeless proves what needs no node: claims about what the extension writes, reports and
// refuses. Its scenarios are like those of package e2e, but take seconds of CPU instead of minutes.
//
// Real are: two API servers with etcd, the extension, gardener-resource-manager, and of
// kube-controller-manager the controllers of namespaces, StatefulSets, DaemonSets, volume claims
// and garbage collection. All run as processes of this machine. The operating system extension of
// the testbed and gardenlet's flows (package kind/gardenlet, without machines) run in the test. One
// thing is emulated: no kubelet runs pods. The type deployments starts gardener-resource-manager as
// a process instead, and reports its Deployment as available. Pods of caches stay pending.
//
// A scenario has its own shoot. The cluster of the shoot is one of the two API servers, which no
// other shoot uses meanwhile.
//
//	go test -count=1 -tags e2e ./e2e/nodeless -run TestScenarios/bad-config
//
// Without -count=1, go test repeats an old result, because the test builds the programs itself.
//
// The package must not use a container engine.
package nodeless
