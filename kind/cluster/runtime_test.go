package cluster

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
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

// restart runs the script on the given files, "config.toml" among them, with fake systemctl and
// journalctl. It returns the resulting configuration, the number of restarts, and whether the
// script failed.
func restart(t *testing.T, files map[string]string, transfer, systemctl, journal string) (content string, restarts int, failed bool) {
	t.Helper()
	dir := t.TempDir()
	config, staged, calls := filepath.Join(dir, "config.toml"), filepath.Join(dir, "config.toml.new"), filepath.Join(dir, "restarts")
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for path, text := range map[string]string{
		staged: "after", calls: "",
		filepath.Join(dir, "systemctl"):  "#!/bin/sh\ncase $1 in restart) echo >>$CALLS; " + systemctl + " ;; show) echo id1 ;; esac\n",
		filepath.Join(dir, "journalctl"): "#!/bin/sh\n[ $# = 1 ] || { [ \"$3\" = _SYSTEMD_INVOCATION_ID=id1 ] && echo '" + journal + "'; }\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", restartRuntime, "bash", staged, transfer, config)
	cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "CALLS="+calls)
	err := cmd.Run()
	data, readErr := os.ReadFile(config)
	lines, callsErr := os.ReadFile(calls)
	if err := errors.Join(readErr, callsErr); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(staged); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is left", staged)
	}
	if _, pending := os.Stat(config + ".pending"); (pending == nil) != (err != nil) {
		t.Errorf("the script ends with %v, and %v: the next call must restart containerd only after a failure", err, pending)
	}
	return string(data), strings.Count(string(lines), "\n"), err != nil
}

func TestRestartRuntime(t *testing.T) {
	const fallback = "Found DiscardUnpackedLayers in CRI config. Falling back to local image pull mode."
	other, same := map[string]string{"config.toml": "before"}, map[string]string{"config.toml": "after"}
	interrupted := map[string]string{"config.toml": "after", "config.toml.pending": ""}
	begun := map[string]string{"config.toml": "before", "config.toml.pending": ""}
	for _, tc := range []struct {
		name                         string
		files                        map[string]string
		transfer, systemctl, journal string
		content                      string
		restarts                     int
		failed                       bool
	}{
		{"it starts", other, "false", "true", fallback, "after", 1, false},
		{"with the transfer service", other, "true", "true", "containerd successfully booted", "after", 1, false},
		{"without the transfer service that was asked for", other, "true", "true", fallback, "after", 1, true},
		{"it does not start", other, "false", "false", "", "after", 1, true},
		{"nothing has changed", same, "false", "true", "", "after", 0, false},
		{"interrupted before the restart", interrupted, "false", "true", "", "after", 1, false},
		{"interrupted before anything was changed", begun, "false", "true", "", "after", 1, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			content, restarts, failed := restart(t, tc.files, tc.transfer, tc.systemctl, tc.journal)
			if content != tc.content || restarts != tc.restarts || failed != tc.failed {
				t.Errorf("configuration %q, %d restarts, failed %t; want %q, %d, %t", content, restarts, failed, tc.content, tc.restarts, tc.failed)
			}
		})
	}
}
