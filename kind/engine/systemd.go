package engine

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gardener-extensions/registry-cache/kind/command"
)

// dropIn lies below /run, so that it lasts until the next boot at most.
const dropIn = "/run/systemd/system/docker.service.d/registry-cache-testbed.conf"

// serviceTimeout bounds each call of systemctl.
const serviceTimeout = 90 * time.Second

// startService starts the packaged service. Without the shim it is the host's own service from then on, and stays;
// with it, a drop-in makes it use the shim and marks it as ours.
func startService(ctx context.Context, shim bool, flags []string) error {
	if shim {
		if err := os.MkdirAll(filepath.Dir(dropIn), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(dropIn, []byte(dropInText(flags)), 0o644); err != nil {
			return err
		}
		if err := systemctl(ctx, "daemon-reload"); err != nil {
			return err
		}
	}
	verb := "start"
	if shim {
		verb = "restart" // installing the package has started it without the drop-in
	}
	if err := systemctl(ctx, verb, "docker.service"); err != nil {
		return fmt.Errorf("%w; see journalctl -u docker.service", err)
	}
	if err := waitForAnswer(ctx, nil); err != nil {
		return fmt.Errorf("%w; see journalctl -u docker.service", err)
	}
	return nil
}

// dropInText replaces the service's command: the flags of Debian's and Ubuntu's unit, then ours.
func dropInText(flags []string) string {
	return "[Service]\nExecStart=\nExecStart=/usr/sbin/dockerd -H fd:// --containerd=/run/containerd/containerd.sock " +
		strings.Join(flags, " ") + "\n"
}

func stopService(ctx context.Context) error {
	if err := systemctl(ctx, "stop", "docker.service", "docker.socket"); err != nil {
		return err
	}
	if err := os.Remove(dropIn); err != nil {
		return err
	}
	return systemctl(ctx, "daemon-reload")
}

func systemctl(ctx context.Context, args ...string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, serviceTimeout, fmt.Errorf("systemctl was not done in %s", serviceTimeout))
	defer cancel()
	_, err := command.Output(ctx, append([]string{"systemctl"}, args...)...)
	return err
}
