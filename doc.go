// Package registrycache holds no code: it is the map of this repository.
//
// What ships, in reading order (imports go one way: api ← nodeconfig ← controller, webhook ← cmd):
//
//   - api/v1alpha3: RegistryConfig and RegistryStatus, configuration and status in a Shoot.
//   - nodeconfig: the files on a node (script, unit, hosts.toml), and their clean-up.
//   - controller: the Extension actuator; below it, as pure functions, the objects that it
//     deploys, and a bulkhead for Shoots that do not answer.
//   - webhook: the mutator of OperatingSystemConfigs, and the validator of Shoots.
//   - charts, examples: Helm charts, image versions, manifests for an operator, example Shoots.
//   - cmd/registry-cache-extension: controller and webhook, on the seed.
//   - cmd/registry-cache-admission: the validator, as a webhook in the garden and offline.
//   - cmd/registry-cache: `serve`, the cache in the shoot, and `clean`, the clean-up of its nodes.
//
// What tests it (kind ← e2e, cmd/testbed; nothing above imports any of it):
//
//   - kind: the testbed as a library: clusters, node image, upstream registries, gardenlet's flow.
//   - cmd/testbed: its command line.
//   - e2e: the scenarios, one behavior in each file; kind/fieldbugs: field bugs, as command lines.
//   - bench, cmd/bench-controller: the cost of the extension on a seed with many shoots, measured.
//
// internal has what they share: program, the frame of every command; golden, for tests; house, the
// rules of this repository as tests.
//
// Read docs/architecture.md for the data flow, docs/testbed.md to run it.
package registrycache
