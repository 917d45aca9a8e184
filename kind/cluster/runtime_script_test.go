package cluster

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// restart runs the script on a configuration, with commands of a node that answer as told, and returns what is left.
func restart(t *testing.T, transfer, systemctl, journal string) (content string, restarts int, failed bool) {
	t.Helper()
	dir := t.TempDir()
	config, staged, calls := filepath.Join(dir, "config.toml"), filepath.Join(dir, "config.toml.new"), filepath.Join(dir, "restarts")
	for path, text := range map[string]string{
		config: "before", staged: "after", calls: "",
		filepath.Join(dir, "systemctl"):  "#!/bin/sh\ncase $1 in restart) echo >>" + calls + "; " + systemctl + " ;; show) echo id1 ;; esac\n",
		filepath.Join(dir, "journalctl"): "#!/bin/sh\n[ $# = 1 ] || { [ \"$3\" = _SYSTEMD_INVOCATION_ID=id1 ] && echo '" + journal + "'; }\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", restartRuntime, "bash", staged, transfer, config)
	cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
	err := cmd.Run()
	data, readErr := os.ReadFile(config)
	lines, callsErr := os.ReadFile(calls)
	if err := errors.Join(readErr, callsErr); err != nil {
		t.Fatal(err)
	}
	for _, left := range []string{staged, config + ".before"} {
		if _, err := os.Stat(left); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is left", filepath.Base(left))
		}
	}
	return string(data), strings.Count(string(lines), "\n"), err != nil
}

func TestRestartRuntime(t *testing.T) {
	const fallback = "Found DiscardUnpackedLayers in CRI config. Falling back to local image pull mode."
	for _, tc := range []struct {
		name, transfer, systemctl, journal string
		content                            string
		restarts                           int
		failed                             bool
	}{
		{"it starts", "false", "true", fallback, "after", 1, false},
		{"with the transfer service", "true", "true", "containerd successfully booted", "after", 1, false},
		{"without the transfer service that was asked for", "true", "true", fallback, "before", 2, true},
		{"it does not start", "false", "false", "", "before", 2, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			content, restarts, failed := restart(t, tc.transfer, tc.systemctl, tc.journal)
			if content != tc.content || restarts != tc.restarts || failed != tc.failed {
				t.Errorf("configuration of %s, %d restarts, failed %t; want %s, %d, %t", content, restarts, failed, tc.content, tc.restarts, tc.failed)
			}
		})
	}
}
