// Package e2e proves the registry cache on kind clusters, with sigs.k8s.io/e2e-framework. Each file
// holds the scenario of one behavior.
//
// A scenario proves its claims with the upstream's access log, the Kubernetes API and the files of
// the nodes, never with the wording of a log. Each scenario creates its own starting state, so it
// can run alone and on a kept testbed. Scenarios on the shoot run one after another, those on the
// seed parallel to them (suite_test.go).
//
// The scenarios have the build tag e2e, because they start clusters:
//
//	go test -c -tags e2e -o bin/e2e.test ./e2e && RUN='^pull-through$' KEEP=1 bin/e2e.test
//
// The package must not know how the testbed is built. What scenarios share is in package rig.
// Package timeline records the order of events, package report renders the results, package profile
// measures CPU time.
package e2e
