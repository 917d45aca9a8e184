package cluster

// goGC makes the garbage collector of Go programs run at a third of its default frequency. The
// testbed has more memory than CPU time.
const goGC = "300"

// frugalPatches returns patches for kubeadm that save CPU time. No scenario needs the defaults.
func frugalPatches() []string {
	gc := []map[string]any{{"name": "GOGC", "value": goGC}}
	// Controllers renew their leases, and after a restart try to acquire them, at this interval.
	lease := map[string]any{"leader-elect-retry-period": "5s"}
	// The kubelet reads the usage of all containers at this interval.
	registration := map[string]any{"kubeletExtraArgs": map[string]any{"housekeeping-interval": "60s"}}
	patches := []map[string]any{
		{
			"kind": "ClusterConfiguration",
			// A crash of the machine may lose data. The testbed is then recreated.
			"etcd":              map[string]any{"local": map[string]any{"extraArgs": map[string]any{"unsafe-no-fsync": "true"}}},
			"controllerManager": map[string]any{"extraArgs": lease},
			"scheduler":         map[string]any{"extraArgs": lease},
		},
		{
			"apiVersion":          "kubeadm.k8s.io/v1beta4", // earlier versions do not have these fields
			"kind":                "ClusterConfiguration",
			"encryptionAlgorithm": "ECDSA-P256", // takes less time than RSA for keys and TLS handshakes
			"etcd":                map[string]any{"local": map[string]any{"extraEnvs": gc}},
			"apiServer":           map[string]any{"extraEnvs": gc},
			"controllerManager":   map[string]any{"extraEnvs": gc},
			"scheduler":           map[string]any{"extraEnvs": gc},
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
