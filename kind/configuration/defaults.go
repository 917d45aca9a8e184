package configuration

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

const (
	defaultWorkers = 2
	// DefaultConfigPath is the folder to which the extension writes.
	DefaultConfigPath = "/etc/containerd/certs.d"
)

// Default is the configuration of a testbed for which nobody has written a file, with all defaults set.
func Default() *Testbed {
	t := &Testbed{TypeMeta: metav1.TypeMeta{APIVersion: APIVersion, Kind: Kind}}
	t.SetDefaults()
	return t
}

// SetDefaults sets what is not set. NodeImage has to be known by then.
func (t *Testbed) SetDefaults() {
	t.Shoot.setDefaults(t.NodeImage != "")
	if t.Upstreams == nil {
		t.Upstreams = []Upstream{{Name: "alpha"}, {Name: "beta"}, {Name: "gamma"}}
		if t.Shoot.Manifest == "" {
			t.Upstreams[2].Cached = ptr.To(false)
		}
	}
	if t.Shoot.Manifest != "" {
		return // it says which upstreams have a cache
	}
	for i := range t.Upstreams {
		if t.Upstreams[i].Cached == nil {
			t.Upstreams[i].Cached = ptr.To(true)
		}
	}
}

func (s *Shoot) setDefaults(stockImage bool) {
	if s.Workers == nil {
		s.Workers = ptr.To(defaultWorkers)
	}
	if s.IPFamily == "" {
		s.IPFamily = IPv4
	}
	if s.KubeProxyMode == "" {
		s.KubeProxyMode = defaultMode(stockImage)
	}
	if s.Containerd.Pull == "" {
		s.Containerd.Pull = PullLocal
	}
	if s.Containerd.ConfigPath == "" {
		s.Containerd.ConfigPath = DefaultConfigPath
	}
}

// WithNodeImage returns a copy with another node image, and with the mode of kube-proxy that is the default for it if the present one
// is the default for the present image: who wants another one with a stock image names both in a file.
func (t *Testbed) WithNodeImage(reference string) *Testbed {
	changed := *t
	changed.NodeImage = reference
	if t.Shoot.KubeProxyMode == defaultMode(t.NodeImage != "") {
		changed.Shoot.KubeProxyMode = defaultMode(reference != "")
	}
	return &changed
}

func defaultMode(stockImage bool) KubeProxyMode {
	if stockImage {
		return IPTables // kind's own default
	}
	return NFTables
}
