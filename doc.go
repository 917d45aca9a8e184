// Package registrycache contains no code. Its documentation lists the packages of this repository.
//
// These packages ship. Imports go only to the left: api ← nodeconfig ← controller, webhook ← cmd.
//
//   - api/v1alpha3: RegistryConfig and RegistryStatus, configuration and status in a Shoot.
//   - nodeconfig: the files on a node (script, unit, hosts.toml), and their clean-up.
//   - registry: the cache. It imports no other package of this repository, and only cmd imports it.
//   - controller: the Extension actuator. Packages below it render the objects that it deploys,
//     and decide when a failed operation is tried again (retry).
//   - webhook: the mutator of OperatingSystemConfigs, and the validator of Shoots.
//   - charts, examples: Helm charts, image versions, manifests for an operator, example Shoots.
//   - cmd/registry-cache-extension: controller and webhook, on the seed.
//   - cmd/registry-cache-admission: the validator, as a webhook in the garden and offline.
//   - cmd/registry-cache: `serve` runs a cache in the Shoot, `clean` cleans a node of the Shoot.
//
// These packages test it. kind imports none of the others. No package above imports them.
//
//   - kind: the testbed as a library, for any extension: clusters, node image, registries, tasks of
//     gardenlet.
//   - cachetest: what registry caches add to it; cachetest/fieldbugs: the catalog of field bugs.
//   - cmd/testbed: its command line.
//   - e2e: the scenarios, one behavior in each file.
//   - bench, cmd/bench-controller: measure the cost of the extension on a seed with many Shoots.
//   - bench/cache, cmd/bench-cache: compare the cache with stock distribution and nginx.
//
// internal contains shared packages: program (signals and exit codes of every command), golden
// (golden files of tests) and house (tests that check the rules of this repository).
//
// Read docs/architecture.md for the data flow and docs/testbed.md to run the testbed.
package registrycache
