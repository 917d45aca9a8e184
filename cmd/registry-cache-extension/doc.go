// Command registry-cache-extension is the extension on a seed: the controller for Extensions of type registry-cache, the
// webhook for OperatingSystemConfigs, and the heartbeat that tells gardenlet that it lives.
//
// It only wires packages together. Flags and behavior are those of every Gardener extension (--help lists them), and limits of
// the requests to the seed (--kube-api-qps, --kube-api-burst); the
// namespaces of leader election, heartbeat and webhook come from LEADER_ELECTION_NAMESPACE and WEBHOOK_CONFIG_NAMESPACE,
// images to replace from IMAGEVECTOR_OVERWRITE. Without WEBHOOK_CONFIG_NAMESPACE the certificates of the webhook are made
// at start and not rotated, which is for development only.
package main
