package cluster

import (
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"
)

const configV2 = `version = 2
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "pause"
[plugins."io.containerd.grpc.v1.cri".containerd]
  discard_unpacked_layers = true
  snapshotter = "overlayfs"
[plugins."io.containerd.grpc.v1.cri".registry]
  config_path = "/etc/containerd/certs.d"
`

const configV3 = `version = 3
[plugins."io.containerd.cri.v1.images"]
  discard_unpacked_layers = true
  use_local_image_pull = true
  snapshotter = "overlayfs"
[plugins."io.containerd.cri.v1.images".registry]
  config_path = "/etc/containerd/certs.d"
`

func TestRuntimeApply(t *testing.T) {
	for _, tc := range []struct {
		name, config string
		runtime      Runtime
		want, absent []string
	}{
		{"nothing", configV2, Runtime{}, []string{configV2}, nil},
		{"the default, spelled out", configV2, Runtime{ConfigPath: RegistryConfigDir}, []string{configV2}, nil},
		{"transfer", configV2, Runtime{TransferService: true},
			[]string{"discard_unpacked_layers = false", "snapshotter = 'overlayfs'", "sandbox_image = 'pause'", "config_path = '/etc/containerd/certs.d'"},
			[]string{"discard_unpacked_layers = true"}},
		{"transfer, version 3", configV3, Runtime{TransferService: true},
			[]string{"discard_unpacked_layers = false", "snapshotter = 'overlayfs'", "config_path = '/etc/containerd/certs.d'"},
			[]string{"use_local_image_pull"}},
		{"two folders", configV2, Runtime{ConfigPath: "/a:/b"}, []string{"config_path = '/a:/b'", "discard_unpacked_layers = true"}, nil},
		{"two folders, version 3", configV3, Runtime{ConfigPath: "/a:/b"}, []string{"config_path = '/a:/b'", "use_local_image_pull = true"}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := tc.runtime.apply([]byte(tc.config))
			if err != nil {
				t.Fatal(err)
			}
			var parsed map[string]any
			if err := toml.Unmarshal(got, &parsed); err != nil {
				t.Fatalf("no TOML: %v\n%s", err, got)
			}
			for _, want := range tc.want {
				if !strings.Contains(string(got), want) {
					t.Errorf("it lacks %s:\n%s", want, got)
				}
			}
			for _, absent := range tc.absent {
				if strings.Contains(string(got), absent) {
					t.Errorf("it has %s:\n%s", absent, got)
				}
			}
		})
	}
	for name, config := range map[string]string{"another version": "version = 4\n", "no version": "", "no TOML": "version = \n"} {
		if _, err := (Runtime{TransferService: true}).apply([]byte(config)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
