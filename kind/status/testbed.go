package status

// Status is what `testbed status` shows of a testbed. Parts that are not there are empty; what could not be read has a
// Problem instead of a value, so that a half-dead testbed still gives a picture.
type Testbed struct {
	Prefix string `json:"prefix"`
	// Owner is the directory to which it belongs, if that is another one than ours.
	Owner string `json:"owner,omitempty"`
	// PlantedBug names the bug that what runs was built with, see Testbed.Plant.
	PlantedBug string    `json:"plantedBug,omitempty"`
	Clusters   []Cluster `json:"clusters"`
	Caches     []Cache   `json:"caches"`
	// CachesProblem says why Caches may not be all there are.
	CachesProblem string            `json:"cachesProblem,omitempty"`
	Upstreams     []Upstream        `json:"upstreams"`
	Versions      map[string]string `json:"versions"`
}

// ClusterStatus is one kind cluster.
type Cluster struct {
	Name       string `json:"name"`
	Role       string `json:"role"`
	Kubeconfig string `json:"kubeconfig,omitempty"`
	Nodes      []Node `json:"nodes,omitempty"`
	Problem    string `json:"problem,omitempty"`
}

// NodeStatus is one node and what its containerd does on a pull.
type Node struct {
	Name  string `json:"name"`
	Ready bool   `json:"ready"`
	// Mirrors are the effective hosts.toml files of the node, ordered by upstream.
	Mirrors []Mirror `json:"mirrors,omitempty"`
	Problem string   `json:"problem,omitempty"`
}

// MirrorStatus is one hosts.toml: pulls from Upstream ask Hosts in this order and Server at last.
type Mirror struct {
	Upstream string   `json:"upstream"`
	Hosts    []string `json:"hosts"`
	Server   string   `json:"server"`
	// Managed says that the file carries the extension's mark; otherwise it is somebody else's.
	Managed bool   `json:"managed"`
	Problem string `json:"problem,omitempty"`
}

// CacheStatus is one cache in the shoot.
type Cache struct {
	Upstream string `json:"upstream"`
	Endpoint string `json:"endpoint"`
	Ready    bool   `json:"ready"`
}

// UpstreamStatus is one upstream registry. Requests counts what caches and nodes asked for since it was started.
type Upstream struct {
	Host     string         `json:"host"`
	Running  bool           `json:"running"`
	State    string         `json:"state"`
	Requests map[string]int `json:"requests,omitempty"`
	Problem  string         `json:"problem,omitempty"`
}

// Exists says whether anything of the testbed is there.
func (s *Testbed) Exists() bool { return len(s.Clusters) > 0 || len(s.Upstreams) > 0 }
