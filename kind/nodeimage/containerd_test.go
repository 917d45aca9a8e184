package nodeimage

import (
	"strings"
	"testing"
)

func TestContainerdConfig(t *testing.T) {
	tests := []struct {
		name, base string
		fails      bool
	}{
		{"kind's", "version = 2\n[plugins.\"io.containerd.grpc.v1.cri\"]\n  sandbox_image = \"p\"\n", false},
		{"has registries already", registryConfig, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := containerdConfig(tt.base)
			if (err != nil) != tt.fails {
				t.Fatalf("error %v, want one: %t", err, tt.fails)
			}
			if !tt.fails && (!strings.HasPrefix(got, tt.base) || !strings.Contains(got, `config_path = "/etc/containerd/certs.d"`)) {
				t.Errorf("got %s", got)
			}
		})
	}
}

func TestBaseSpec(t *testing.T) {
	tests := []struct {
		name, spec string
		hooks      int
	}{
		{"no hooks", `{"process":{"args":["sh"],"rlimits":[{"type":"RLIMIT_NOFILE"}]}}`, 1},
		{"an existing hook", `{"process":{"rlimits":[]},"hooks":{"createContainer":[{"path":"/other"}]}}`, 2},
		{"no process", `{}`, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := baseSpec([]byte(tt.spec))
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(got, "rlimits") || strings.Count(got, `"path"`) != tt.hooks || !strings.Contains(got, "mount-product-files.sh") {
				t.Errorf("want no rlimits and %d hooks, got\n%s", tt.hooks, got)
			}
			if strings.Contains(tt.spec, "args") && !strings.Contains(got, `"args"`) {
				t.Errorf("existing content is lost:\n%s", got)
			}
		})
	}
	if _, err := baseSpec([]byte("ctr: failed")); err == nil || !strings.Contains(err.Error(), "ctr oci spec") {
		t.Errorf("not JSON: got %v", err)
	}
}
