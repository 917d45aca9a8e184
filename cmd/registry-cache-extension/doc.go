// Command registry-cache-extension runs on a seed: the controller for Extensions of type
// registry-cache, the webhook for OperatingSystemConfigs, and the heartbeat for gardenlet.
//
// It only wires packages together. It has the flags of every Gardener extension (see --help), and
// limits for requests to the seed (--kube-api-qps, --kube-api-burst). LEADER_ELECTION_NAMESPACE and
// WEBHOOK_CONFIG_NAMESPACE set the namespaces of leader election, heartbeat and webhook.
// IMAGEVECTOR_OVERWRITE is the path of a file with other images. Without WEBHOOK_CONFIG_NAMESPACE,
// the webhook certificates are created at startup and never rotated, which is for development only.
package main
