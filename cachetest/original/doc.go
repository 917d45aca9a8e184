// Package original stands in for gardener-extension-registry-cache, the extension that this one
// replaces, so that scenarios can take over what it leaves behind, and give it back.
//
// It is a reconstruction from a description of what the original writes (version v0.25.0-dev); no
// code of the original runs. Real are the ManagedResources, the certificates of Gardener's secrets
// manager, the caches (distribution's stock image), gardenlet's flows, and the hosts.toml files:
// gardener-node-agent writes them from criConfig.containerd.registries. Reconstructed are
//
//   - the controller: Extension acts on the Extension resource as the original does;
//   - its webhook: a MutatingAdmissionPolicy adds the registries to OperatingSystemConfigs;
//   - its Deployment: Chart has the original's names and selector, and no replica.
//
// Left out are VerticalPodAutoscalers, for which the testbed's Shoot has no API, the cleaner of the
// original, and the webhook for registry-mirror.
package original
