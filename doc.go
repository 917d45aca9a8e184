// Package registrycache holds no code: it is the map of this repository, and its tests keep the map true.
//
// What ships, in reading order (arrows point one way, api ← nodeconfig ← controller, webhook ← cmd):
//
//   - api/v1alpha3: RegistryConfig and RegistryStatus, what a Shoot says and what the extension answers.
//   - nodeconfig: all that lands on a node (the script, its unit, hosts.toml), and the clean-up that undoes exactly that.
//   - controller: the Extension actuator; below it, as pure functions, the objects that it deploys.
//   - webhook: the mutator that puts script and unit into a worker pool's OperatingSystemConfig; the validator of Shoots.
//   - charts, examples: the Helm charts, the versions of the images, what an operator applies, Shoots to copy.
//   - cmd/registry-cache-extension: controller and webhook, run in the seed.
//   - cmd/registry-cache-admission: the validator, as a webhook in the garden and offline.
//   - cmd/registry-cache: `serve`, the registry in the shoot, and `clean`, the clean-up on its nodes.
//
// What proves it (kind ← e2e, cmd/testbed; nothing above imports any of it):
//
//   - kind: the testbed as a library: engine, node image, clusters, upstream registries, gardenlet's flow, diagnostics.
//   - cmd/testbed: its command line.
//   - e2e: the scenarios, one behavior a file; e2e/fieldbugs: bugs of the field, made of command lines of the testbed.
//   - bench, cmd/bench-controller: what the extension costs on a seed with many shoots, measured against real API servers.
//
// internal holds what several of these share: program, the frame of every command, and golden, for tests.
//
// Read docs/architecture.md for how the data flows, docs/testbed.md to run it.
package registrycache
