package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/gardener-extensions/registry-cache/kind/command"
)

const (
	nodeAgentDir  = "/var/lib/gardener-node-agent"
	nodeAgentUnit = "gardener-node-agent.service"
	// lastApplied is where gardener-node-agent v1.147 keeps the OperatingSystemConfig that it applied last.
	lastApplied = nodeAgentDir + "/last-applied-osc.yaml"

	machineTimeout = 2 * time.Minute
)

// stopMachine is `crictl rmp` for all pods, after what would start them again. Its requests have 2 seconds by default, which
// a busy machine does not make.
const stopMachine = `
systemctl stop "$@" kubelet.service
crictl --timeout=30s rmp --all --force >/dev/null
`

// StopMachine makes the node look like a machine that is gone: gardener-node-agent, the units that it started and the
// kubelet are stopped, all pods are killed. The container stays; deleting the Node object is up to the caller.
func (n *Node) StopMachine(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, machineTimeout, fmt.Errorf("%s was not stopped in %s", n.Name(), machineTimeout))
	defer cancel()
	if n.controlPlane {
		return fmt.Errorf("%s is the control plane: the cluster would be gone with it", n.Name())
	}
	laid, err := n.laidDown(ctx)
	if err != nil {
		return err
	}
	units, err := n.loadedUnits(ctx, append([]string{nodeAgentUnit}, laid.units...))
	if err != nil {
		return err
	}
	_, err = n.Script(ctx, stopMachine, units...)
	return err
}

// startMachine removes what is named line by line, files first, so that nothing of the former machine is left but what
// the image brought.
const startMachine = `
for unit in $1; do systemctl disable --now -- "$unit" >/dev/null 2>&1 || true; done
printf '%s' "$2" | while IFS= read -r path; do rm -rf -- "$path"; done
find "$3" -mindepth 1 -delete 2>/dev/null || true
find "$4" -mindepth 1 -delete 2>/dev/null || true
systemctl daemon-reload
systemctl reset-failed
# Images of the reserved domain .test (RFC 6761) were pulled by scenarios. An image has several names, one of them without the
# domain: what they have in common is the digest. With --sync their content is gone too when the last one is removed.
pulled() {
  ctr --namespace=k8s.io images list | awk '
    NR > 1 { digest[$1] = $3 }
    $1 ~ /^[^\/]+\.test(:[0-9]+)?\// { pulled[$3] }
    END { for (name in digest) if (digest[name] in pulled) print name }'
}
pulled | xargs --no-run-if-empty ctr --namespace=k8s.io images remove --sync >/dev/null
[[ -z "$(pulled)" ]] || { echo "images are left: $(pulled)" >&2; exit 1; }
# The runtime service hears of that some time later; the kubelet must not take an image for present that is gone.
for ((tries = 100; tries > 0; tries--)); do
  crictl images | grep -E '^[^/]+\.test(:[0-9]+)?/' >/dev/null || break
  sleep 0.1
done
[[ $tries -gt 0 ]] || { echo "the runtime service still has the images after 10 seconds" >&2; exit 1; }
systemctl start kubelet.service
`

// StartMachine makes the node look like a fresh machine that joins: gardener-node-agent's state, what it laid down for
// the OperatingSystemConfig, all registry configuration and all images that were pulled from *.test are removed; then the
// kubelet starts. It returns when the Node object is there again and Ready.
func (n *Node) StartMachine(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, machineTimeout, fmt.Errorf("%s was not ready again in %s", n.Name(), machineTimeout))
	defer cancel()
	laid, err := n.laidDown(ctx)
	if err != nil {
		return err
	}
	units, err := n.loadedUnits(ctx, append([]string{nodeAgentUnit}, laid.units...))
	if err != nil {
		return err
	}
	paths, start := lines(laid.paths), time.Now()
	if _, err := n.Script(ctx, startMachine, strings.Join(units, " "), paths, nodeAgentDir, RegistryConfigDir); err != nil {
		return err
	}
	if err := n.cluster.waitForRegistration(ctx, n, start); err != nil {
		return err
	}
	if !n.cluster.stock {
		if err := n.cluster.applyPodNetwork(ctx); err != nil {
			return err
		}
	}
	return n.cluster.waitForReadyNodes(ctx, n.Name())
}

// laidDown reads what gardener-node-agent has laid down on the node; nothing if it never ran.
func (n *Node) laidDown(ctx context.Context) (laidDown, error) {
	data, err := n.ReadFile(ctx, lastApplied)
	if errors.Is(err, fs.ErrNotExist) {
		return laidDown{}, nil
	}
	if err != nil {
		return laidDown{}, err
	}
	laid, err := parseLastApplied(data)
	if err != nil {
		return laidDown{}, fmt.Errorf("%s of %s: %w", lastApplied, n.Name(), err)
	}
	return laid, nil
}

// loadedUnits returns those of the units that systemd knows: stopping an unknown one is an error.
func (n *Node) loadedUnits(ctx context.Context, units []string) ([]string, error) {
	const script = `for unit; do systemctl cat -- "$unit" >/dev/null 2>&1 && echo "$unit" || true; done`
	out, err := n.Script(ctx, script, units...)
	return strings.Fields(out), err
}

// kubeletRuns tells whether the node's kubelet is, or is about to be, active.
func (n *Node) kubeletRuns(ctx context.Context) (bool, error) {
	out, err := n.Exec(ctx, "systemctl", "is-active", "kubelet.service")
	var failed *command.Error
	if errors.As(err, &failed) && strings.TrimSpace(out) != "" {
		err = nil // the exit code says no more than the output
	}
	state := strings.TrimSpace(out)
	return state == "active" || state == "activating", err
}

func lines(paths []string) string {
	if len(paths) == 0 {
		return ""
	}
	return strings.Join(paths, "\n") + "\n"
}
