// Package kind provides the testbed: two kind clusters on one machine, a Gardener seed and a shoot,
// with real upstream registries, the real gardener-resource-manager and gardener-node-agent, and
// an extension, installed as gardenlet installs it.
//
// A Testbed has names, a state folder, a lock, a configuration, and the parts that Attach or Up
// found or created. The operations on a testbed are functions that take a *Testbed. The second list
// below names their packages, which package kind must not import. cmd/testbed is the command line
// of these operations.
//
// These are the packages of the parts, in the order of their use. They must not import kind:
//
//   - configuration: testbed.yaml, which describes a testbed.
//   - engine: the Docker Engine, and the Debian packages of the engine and of builds.
//   - nodeimage: the image of a kind node, from Go modules and Debian packages.
//   - image: container images of binaries, of test content and of CNCF distribution.
//   - certificate, cluster: the CA that nodes trust, private CAs, and a kind cluster.
//   - upstream: the upstream registries, a proxy, and their access logs.
//   - gardener, osextension: the parts of Gardener, and an operating system extension.
//   - gardenlet: gardenlet's flows for one Shoot, and the permanent gardenlet of a garden.
//
// These are the packages of the operations:
//
//   - bringup: checks of the machine, Up, Down, the garden, and the installation of the extension.
//   - operate: changes to the Shoot that an operator makes, some of them from a file.
//   - fault: applies and deletes faults.
//   - develop: builds and rollouts from the sources, and programs on nodes.
//   - status, export: what runs, and an archive for an engineer.
//
// None of these packages imports an extension: they receive one as a value of type Extension.
// Package cachetest, outside this folder, provides the value for this repository's extension. Two
// packages mention caches: fault, for the targets that an Extension names (spec.Cache), and
// upstream/accesslog, for one kind of client.
//
// Helpers: command runs programs and ends the ones that a killed command left, nodeexec runs
// programs on nodes, file replaces and locks files, progress prints and records steps, and
// kindtest creates testbeds for tests.
//
// No shipped program imports this package or a package below it.
package kind
