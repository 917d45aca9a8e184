// Package kind is the testbed as a library: two kind clusters on one machine, one acting as Gardener seed and one as
// shoot, with real upstream registries, the real gardener-resource-manager and gardener-node-agent, and the extension
// installed as gardenlet installs it. Each verb of cmd/testbed is a method of Testbed before it is a command.
//
// The packages below it, in the order in which Up uses them: preflight and engine (the machine and its Docker Engine),
// nodeimage (the kind node image), image (our binaries as container images), cluster (a kind cluster and its nodes),
// upstream (the registries that are cached), gardener (what Gardener installs), gardenlet (what gardenlet does for one
// Shoot). diagnostics collects what an engineer needs after a failure; progress prints and records the steps.
//
// Nothing that ships imports this package or one below it.
package kind
