// Package e2e tests the registry cache on kind clusters, with sigs.k8s.io/e2e-framework. Each file
// contains the scenarios of one behavior.
//
// A scenario proves its claims with the upstream's access log, the Kubernetes API and the files of
// the nodes, never with the text of a program's log. Each scenario creates its own starting state,
// so it can run alone and on a kept testbed. Scenarios run one after another (suite_test.go).
//
// The scenarios have the build tag e2e, because they start clusters. To run one of them:
//
//	go test -c -tags e2e -o bin/e2e.test ./e2e && RUN='^pull-through$' KEEP=1 bin/e2e.test
//
// The package must contain no code that builds the testbed. Package rig contains the code that
// scenarios share, and package report renders the results.
package e2e
