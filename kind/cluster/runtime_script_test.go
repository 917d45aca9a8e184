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

// restart runs the script on these files, the configuration "config.toml" among them, with commands of a node that answer as told, and
// returns what is left.
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
	for _, left := range []string{staged, config + ".before", config + ".copy"} {
		if _, err := os.Stat(left); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is left", filepath.Base(left))
		}
	}
	return string(data), strings.Count(string(lines), "\n"), err != nil
}

func TestRestartRuntime(t *testing.T) {
	const fallback = "Found DiscardUnpackedLayers in CRI config. Falling back to local image pull mode."
	const onlyBefore = `[ "$(wc -l <"$CALLS")" = 2 ]` // containerd starts when its configuration is back
	other, same := map[string]string{"config.toml": "before"}, map[string]string{"config.toml": "after"}
	cutOff := map[string]string{"config.toml": "after", "config.toml.before": "before"}
	begun := map[string]string{"config.toml": "before", "config.toml.copy": "bef"}
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
		{"without the transfer service that was asked for", other, "true", "true", fallback, "before", 2, true},
		{"it does not start", other, "false", onlyBefore, "", "before", 2, true},
		{"nothing has changed", same, "false", "true", "", "after", 0, false},
		{"cut off before the restart", cutOff, "false", "true", "", "after", 1, false},
		{"cut off before the restart, and it does not start", cutOff, "false", onlyBefore, "", "before", 2, true},
		{"cut off before anything was changed", begun, "false", "true", "", "after", 1, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			content, restarts, failed := restart(t, tc.files, tc.transfer, tc.systemctl, tc.journal)
			if content != tc.content || restarts != tc.restarts || failed != tc.failed {
				t.Errorf("configuration of %s, %d restarts, failed %t; want %s, %d, %t", content, restarts, failed, tc.content, tc.restarts, tc.failed)
			}
		})
	}
}
