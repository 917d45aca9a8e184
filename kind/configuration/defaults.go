package configuration

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

const (
	defaultWorkers = 2
	// DefaultConfigPath is the folder that the extension writes to.
	DefaultConfigPath = "/etc/containerd/certs.d"
)

// Default returns the configuration of a testbed without a file.
func Default() *Testbed {
	t := &Testbed{TypeMeta: metav1.TypeMeta{APIVersion: APIVersion, Kind: Kind}}
	t.SetDefaults()
	return t
}

// SetDefaults sets the fields that are not set. The default of KubeProxyMode depends on NodeImage.
func (t *Testbed) SetDefaults() {
	t.Shoot.setDefaults(t.NodeImage != "")
	if t.Upstreams == nil {
		t.Upstreams = []Upstream{{Name: "alpha"}, {Name: "beta"}, {Name: "gamma"}}
		if t.Shoot.Manifest == "" {
			t.Upstreams[2].Cached = ptr.To(false)
		}
	}
	if t.Shoot.Manifest != "" {
		return // the manifest decides which upstreams have a cache
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

// WithNodeImage returns a copy with another node image. A kube-proxy mode that is the default of
// the current image becomes that of the new one; to keep it, name both in the file.
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
