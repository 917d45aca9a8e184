// Package kind is the testbed as a library: two kind clusters on one machine, one acting as Gardener seed and one as
// shoot, with real upstream registries, the real gardener-resource-manager and gardener-node-agent, and the extension
// installed as gardenlet installs it. Each verb of cmd/testbed that acts on a testbed is a method of Testbed before it
// is a command, but for reproduce, which is in kind/fieldbugs.
//
// The packages below it, in the order in which Up uses them:
//
//   - preflight: can this machine carry the testbed?
//   - engine, debian: the Docker Engine, and the Debian packages that bring it and the tools of a build.
//   - nodeimage: the image of a kind node, from Go modules and Debian packages.
//   - image: our binaries, and test content, as container images.
//   - certificate: the authority that the nodes trust.
//   - cluster: one kind cluster and its nodes.
//   - upstream: the registries that are cached, a proxy, and their access logs.
//   - gardener, osextension: what Gardener installs, and a small operating system extension.
//   - gardenlet: what gardenlet does for one Shoot.
//
// Beside them: configuration is the file that says what a testbed is to be, snapshot keeps what volumes hold, manifest reads
// the Shoot that somebody has in a file, distribution describes the stock image that can stand in for ours, diagnostics
// collects what an engineer needs after a failure and says what is wrong, doctor does so for a machine, logs merges logs,
// trace shows who asked whom during a pull, logline and hostsfile read a line of a log and a hosts.toml, fault says what can
// be broken on purpose, mutant plants bugs that the scenarios have to notice, pull tells who served what a node pulled,
// readiness tells whether nodes and pods are ready, progress prints and records the steps, command runs programs, file
// replaces files, lock keeps processes apart.
//
// Nothing that ships imports this package or one below it.
package kind
