package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
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
	// forgetTimeout bounds how long the runtime service may list images that containerd has no more.
	forgetTimeout = 10 * time.Second
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

// startMachine removes the former machine, files first, so that nothing is left but what the image brought. It takes the units
// to disable in $1, the paths to remove line by line in $2, the directories to empty in $3 and $4, and forgetTimeout in whole
// seconds in $5.
const startMachine = `
for unit in $1; do systemctl disable --now -- "$unit" >/dev/null 2>&1 || true; done
printf '%s' "$2" | while IFS= read -r path; do rm -rf -- "$path"; done
find "$3" -mindepth 1 -delete 2>/dev/null || true
find "$4" -mindepth 1 -delete 2>/dev/null || true
systemctl daemon-reload
systemctl reset-failed
# Images of the reserved domain .test (RFC 6761) were pulled by scenarios. An image has several names, one of them without the
# domain: what they have in common is the digest. With --sync their content is gone too when the last one is removed.
scenarios='^[^/]+[.]test(:[0-9]+)?/'
pulled() {
  ctr --namespace=k8s.io images list | awk -v scenarios="$scenarios" '
    NR > 1 { digest[$1] = $3 }
    $1 ~ scenarios { pulled[$3] }
    END { for (name in digest) if (digest[name] in pulled) print name }'
}
pulled | xargs --no-run-if-empty ctr --namespace=k8s.io images remove --sync >/dev/null
left=$(pulled) # an assignment keeps the exit code: when ctr fails, the script does
[[ -z "$left" ]] || { echo "images are left: ${left//$'\n'/ }" >&2; exit 1; }
# The runtime service hears of that some time later; the kubelet must not take an image for present that is gone. An error of
# crictl tells nothing: only a list without these images does.
listed() {
  crictl --timeout=30s images | awk -v scenarios="$scenarios" '$1 ~ scenarios { print $1 ":" $2 }'
}
SECONDS=0
until left=$(listed) && [[ -z "$left" ]]; do
  if ((SECONDS >= $5)); then
    left=${left:-unknown, crictl fails}
    echo "images are left in the runtime service after $5 seconds: ${left//$'\n'/ }" >&2
    exit 1
  fi
  sleep 0.1
done
systemctl start kubelet.service
`

// StartMachine makes the node look like a fresh machine that joins: gardener-node-agent's state, what it laid down for
// the OperatingSystemConfig, all registry configuration, the pod network's configuration and all images that were pulled
// from *.test are removed; then the kubelet starts. It returns when the Node object is there again and Ready.
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
	paths, start := lines(formerPaths(laid, n.cluster.stock)), time.Now()
	forget := fmt.Sprintf("%.0f", forgetTimeout.Seconds())
	if _, err := n.Script(ctx, startMachine, strings.Join(units, " "), paths, nodeAgentDir, RegistryConfigDir, forget); err != nil {
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

// formerPaths returns what a machine that starts anew must not have. Without the CNI configuration of the former one the
// runtime's network is not ready until [Node.applyPodNetwork] has written that of the new range: a pod that started before
// had an address of the old range, to which no other node has a route. kind's own network (stock) looks after itself.
func formerPaths(laid laidDown, stock bool) []string {
	if stock {
		return laid.paths
	}
	return append(slices.Clone(laid.paths), conflistPath)
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
