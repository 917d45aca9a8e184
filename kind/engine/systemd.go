package engine

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gardener-extensions/registry-cache/kind/command"
	"github.com/gardener-extensions/registry-cache/kind/progress"
)

// dropIn is below /run, so it disappears at the next boot.
const dropIn = "/run/systemd/system/docker.service.d/registry-cache-testbed.conf"

// serviceTimeout bounds each systemctl call.
const serviceTimeout = 90 * time.Second

// startService starts the packaged service. With the shim, a drop-in makes the service use the shim
// and the managed label. Without the shim, the service has no label, and Release never stops it.
func startService(ctx context.Context, shim bool, flags []string) error {
	verb := "start"
	if shim {
		verb = "restart" // the package's installation has started the service without the drop-in
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
	err := systemctl(ctx, verb, "docker.service")
	if err == nil {
		err = waitForAnswer(ctx, nil)
	}
	if err != nil {
		return fmt.Errorf("%w; see journalctl -u docker.service", err)
	}
	return nil
}

// dropInText returns a drop-in that replaces the service's command: dockerd with the flags of
// Debian's and Ubuntu's unit, followed by the given flags.
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
	ctx, cancel := progress.Within(ctx, serviceTimeout, "systemctl did not finish")
	defer cancel()
	_, err := command.Output(ctx, append([]string{"systemctl"}, args...)...)
	return err
}
