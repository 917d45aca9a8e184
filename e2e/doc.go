// Package e2e proves the registry cache on real kind clusters, with sigs.k8s.io/e2e-framework: one
// behavior a file.
//
// What a scenario claims rests on the upstream's access log, on the Kubernetes API and on the files
// of the nodes, never on the wording of a log. Each scenario brings the shoot into its own starting
// state, so each can be run alone and on a testbed that was kept. Those on the shoot run one after
// another, those on the seed beside them (suite_test.go).
//
// The scenarios are behind the build tag e2e, because running them starts clusters:
//
//	go test -c -tags e2e -o bin/e2e.test ./e2e && RUN='^pull-through$' KEEP=1 bin/e2e.test
//
// The package must not know how the testbed is made; it knows only kind.Testbed's methods. Its
// order of events comes from package timeline, its results go to package report.
package e2e
