package nodeimage

import (
	"strings"
	"testing"
)

// listed is the output of kubeadm v1.36.2.
const listed = `registry.k8s.io/kube-apiserver:v1.36.2
registry.k8s.io/kube-controller-manager:v1.36.2
registry.k8s.io/kube-scheduler:v1.36.2
registry.k8s.io/kube-proxy:v1.36.2
registry.k8s.io/coredns/coredns:v1.14.2
registry.k8s.io/pause:3.10.2
registry.k8s.io/etcd:3.6.8-0
`

func TestReferences(t *testing.T) {
	tests := []struct {
		name, listed string
		err          string
	}{
		{"as kubeadm lists", listed, ""},
		{"one missing", strings.Replace(listed, "registry.k8s.io/etcd:3.6.8-0", "", 1), "kubeadm does not list an image etcd"},
		{"one more", listed + "registry.k8s.io/kine:v1\n", "an image that is not built"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			refs, err := references(tt.listed, "registry.k8s.io/pause:3.10")
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("got %v, want %q", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for name, want := range map[string]string{
				"coredns":                "registry.k8s.io/coredns/coredns:v1.14.2",
				"etcd":                   "registry.k8s.io/etcd:3.6.8-0",
				"pause":                  "registry.k8s.io/pause:3.10", // containerd's, not kubeadm's
				"busybox":                HelperImage,
				"local-path-provisioner": LocalPathProvisionerImage,
			} {
				if refs[name] != want {
					t.Errorf("%s is %q, want %q", name, refs[name], want)
				}
			}
		})
	}
}

func TestSandboxImage(t *testing.T) {
	tests := []struct {
		name, config, want string
	}{
		{"named", "[plugins.\"io.containerd.grpc.v1.cri\"]\nsandbox_image = \"registry.k8s.io/pause:3.10\"", "registry.k8s.io/pause:3.10"},
		{"not named", "[plugins.\"io.containerd.grpc.v1.cri\"]", ""},
		{"no TOML", "[", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := sandboxImage(tt.config)
			if got != tt.want || (err == nil) != (tt.want != "") {
				t.Errorf("got %q, %v; want %q", got, err, tt.want)
			}
		})
	}
}
