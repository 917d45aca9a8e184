package cluster

// frugalGo makes the control plane's programs use less CPU time. The testbed has more memory than
// CPU time, so the garbage collector runs at a third of its default frequency. A program that uses
// one core wakes no threads on others and does not search there for work.
var frugalGo = []map[string]any{{"name": "GOGC", "value": "300"}, {"name": "GOMAXPROCS", "value": "1"}}

// frugalPatches returns patches for kubeadm that save CPU time. No scenario needs the defaults.
func frugalPatches() []string {
	// A cluster has one control plane node, so these processes have no rivals.
	alone := map[string]any{"leader-elect": "false"}
	// The kubelet reads the usage of all containers at this interval.
	registration := map[string]any{"kubeletExtraArgs": map[string]any{"housekeeping-interval": "60s"}}
	patches := []map[string]any{
		{
			"kind": "ClusterConfiguration",
			// A crash of the machine may lose data. The testbed is then recreated.
			"etcd":              map[string]any{"local": map[string]any{"extraArgs": map[string]any{"unsafe-no-fsync": "true"}}},
			"controllerManager": map[string]any{"extraArgs": alone},
			"scheduler":         map[string]any{"extraArgs": alone},
		},
		{
			"apiVersion":          "kubeadm.k8s.io/v1beta4", // earlier versions do not have these fields
			"kind":                "ClusterConfiguration",
			"encryptionAlgorithm": "ECDSA-P256", // takes less time than RSA for keys and TLS handshakes
			"etcd":                map[string]any{"local": map[string]any{"extraEnvs": frugalGo}},
			"apiServer":           map[string]any{"extraEnvs": frugalGo},
			"controllerManager":   map[string]any{"extraEnvs": frugalGo},
			"scheduler":           map[string]any{"extraEnvs": frugalGo},
		},
		{"kind": "InitConfiguration", "nodeRegistration": registration},
		{"kind": "JoinConfiguration", "nodeRegistration": registration},
	}
	var texts []string
	for _, patch := range patches {
		texts = append(texts, mustYAML(patch))
	}
	return texts
}
