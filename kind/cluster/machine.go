package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"sigs.k8s.io/yaml"

	"github.com/gardener-extensions/registry-cache/kind/command"
	"github.com/gardener-extensions/registry-cache/kind/progress"
)

const (
	nodeAgentDir  = "/var/lib/gardener-node-agent"
	nodeAgentUnit = "gardener-node-agent.service"
	// lastApplied is where gardener-node-agent v1.150 stores the last applied OperatingSystemConfig.
	lastApplied = nodeAgentDir + "/last-applied-osc.yaml"

	machineTimeout = 2 * time.Minute
	// imageListTimeout bounds how long the CRI may still list images that containerd has removed.
	imageListTimeout = 10 * time.Second
)

// stopMachine stops the units that would start pods again, then runs `crictl rmp` for all pods.
// crictl's default timeout of 2 seconds is too short for a busy machine.
const stopMachine = `
systemctl stop "$@" kubelet.service
crictl --timeout=30s rmp --all --force >/dev/null
`

// StopMachine makes the node look like a removed machine. It stops gardener-node-agent, the units
// that gardener-node-agent started, and the kubelet, and kills all pods. The container and the Node
// object remain.
func (n *Node) StopMachine(ctx context.Context) error {
	ctx, cancel := progress.Within(ctx, machineTimeout, fmt.Sprintf("%s was not stopped", n.Name()))
	defer cancel()
	if n.controlPlane {
		return fmt.Errorf("%s is the control plane, without which the cluster does not work", n.Name())
	}
	applied, err := n.appliedOSC(ctx)
	if err != nil {
		return err
	}
	_, err = n.Script(ctx, stopMachine, applied.units...)
	return err
}

// resetMachine removes units, files and images that are not part of the node image. Arguments: $1
// the units to disable, $2 the paths to remove, one per line, $3 and $4 the directories to empty,
// $5 imageListTimeout in whole seconds.
const resetMachine = `
for unit in $1; do systemctl disable --now -- "$unit" >/dev/null 2>&1 || true; done
printf '%s' "$2" | while IFS= read -r path; do rm -rf -- "$path"; done
find "$3" -mindepth 1 -delete 2>/dev/null || true
find "$4" -mindepth 1 -delete 2>/dev/null || true
systemctl daemon-reload
systemctl reset-failed
# Scenarios pull images from hosts in .test, a reserved domain (RFC 6761). An image has several names, one of them without the
# host: only the digest identifies all of them. --sync also deletes the content with the last name.
scenarios='^[^/]+[.]test(:[0-9]+)?/'
pulled() {
  ctr --namespace=k8s.io images list | awk -v scenarios="$scenarios" '
    NR > 1 { digest[$1] = $3 }
    $1 ~ scenarios { pulled[$3] }
    END { for (name in digest) if (digest[name] in pulled) print name }'
}
pulled | xargs --no-run-if-empty ctr --namespace=k8s.io images remove --sync >/dev/null
left=$(pulled) # an assignment keeps the exit code, so the script fails if ctr fails
[[ -z "$left" ]] || { echo "images were not removed: ${left//$'\n'/ }" >&2; exit 1; }
# The CRI updates its list later. The kubelet must not start before that, since it would not pull an
# image in the list. Repeat crictl if it fails: only a list without these images is enough.
listed() {
  crictl --timeout=30s images | awk -v scenarios="$scenarios" '$1 ~ scenarios { print $1 ":" $2 }'
}
SECONDS=0
until left=$(listed) && [[ -z "$left" ]]; do
  if ((SECONDS >= $5)); then
    left=${left:-unknown, crictl fails}
    echo "the CRI still lists images after $5 seconds: ${left//$'\n'/ }" >&2
    exit 1
  fi
  sleep 0.1
done
`

// StartMachine makes the node look like a new machine that joins. It removes gardener-node-agent's
// state, the units and files that it applied, all registry and pod network configuration, and the
// images of *.test hosts. It then calls the function configure, which may be nil, starts the
// kubelet, and waits until the Node exists and is Ready.
func (n *Node) StartMachine(ctx context.Context, configure func(context.Context) error) error {
	if err := n.reset(ctx); err != nil {
		return err
	}
	if configure != nil {
		if err := configure(ctx); err != nil {
			return err
		}
	}
	return n.startKubelet(ctx)
}

func (n *Node) reset(ctx context.Context) error {
	ctx, cancel := progress.Within(ctx, machineTimeout, fmt.Sprintf("%s was not reset", n.Name()))
	defer cancel()
	applied, err := n.appliedOSC(ctx)
	if err != nil {
		return err
	}
	paths, timeout := lines(stalePaths(applied, n.cluster.stock)), fmt.Sprintf("%.0f", imageListTimeout.Seconds())
	_, err = n.Script(ctx, resetMachine, strings.Join(applied.units, " "), paths, nodeAgentDir, RegistryConfigDir, timeout)
	return err
}

func (n *Node) startKubelet(ctx context.Context) error {
	ctx, cancel := progress.Within(ctx, machineTimeout, fmt.Sprintf("%s was not ready again", n.Name()))
	defer cancel()
	start := time.Now()
	if _, err := n.Exec(ctx, "systemctl", "start", "kubelet.service"); err != nil {
		return err
	}
	if err := n.cluster.waitForRegistration(ctx, n, start); err != nil {
		return err
	}
	if err := n.cluster.applyPodNetwork(ctx); err != nil {
		return err
	}
	return n.cluster.waitForReadyNodes(ctx, n.Name())
}

// stalePaths returns the files that a new machine must not have. One is the CNI configuration: a
// pod that starts before [Node.applyPodNetwork] would get an address from the previous pod CIDR, to
// which no other node has a route. With a stock image, kind's CNI plugin updates the file itself.
func stalePaths(applied appliedOSC, stock bool) []string {
	if stock {
		return applied.paths
	}
	return append(slices.Clone(applied.paths), conflistPath)
}

// appliedOSC returns the units and paths that gardener-node-agent has put on the node, including
// its own unit. It omits units without a unit file, since stopping such a unit is an error.
func (n *Node) appliedOSC(ctx context.Context) (appliedOSC, error) {
	data, err := n.ReadFile(ctx, lastApplied)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return appliedOSC{}, err
	}
	applied, err := parseLastApplied(data) // empty if gardener-node-agent never ran
	if err != nil {
		return appliedOSC{}, fmt.Errorf("%s of %s: %w", lastApplied, n.Name(), err)
	}
	const script = `for unit; do systemctl cat -- "$unit" >/dev/null 2>&1 && echo "$unit" || true; done`
	out, err := n.Script(ctx, script, append([]string{nodeAgentUnit}, applied.units...)...)
	applied.units = strings.Fields(out)
	return applied, err
}

func (n *Node) kubeletRuns(ctx context.Context) (bool, error) {
	out, err := n.Exec(ctx, "systemctl", "is-active", "kubelet.service")
	var failed *command.Error
	if errors.As(err, &failed) && strings.TrimSpace(out) != "" {
		err = nil // the output contains the state, whatever the exit code
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

// removableDirs are the directories from which files of an OperatingSystemConfig are removed. Files
// elsewhere may belong to the node image.
var removableDirs = []string{"/etc/systemd/system/", "/opt/bin/"}

// keptUnits belong to the node image. An OperatingSystemConfig can only add drop-ins to them.
var keptUnits = []string{"containerd.service", "kubelet.service"}

// appliedOSC contains the units and paths that an OperatingSystemConfig has put on a node.
type appliedOSC struct {
	units []string // without keptUnits
	paths []string // files and directories to remove
}

// parseLastApplied returns the units and paths of the OperatingSystemConfig that
// gardener-node-agent applied last. It ignores unknown fields, which belong to other versions.
func parseLastApplied(data []byte) (appliedOSC, error) {
	var osc extensionsv1alpha1.OperatingSystemConfig
	if err := yaml.Unmarshal(data, &osc); err != nil {
		return appliedOSC{}, fmt.Errorf("decoding the OperatingSystemConfig: %w", err)
	}
	var applied appliedOSC
	for _, unit := range append(osc.Spec.Units, osc.Status.ExtensionUnits...) {
		unitFile := "/etc/systemd/system/" + path.Base(unit.Name)
		for _, dropIn := range unit.DropIns {
			applied.paths = addMissing(applied.paths, unitFile+".d/"+path.Base(dropIn.Name))
		}
		if slices.Contains(keptUnits, unit.Name) {
			continue
		}
		applied.units = addMissing(applied.units, unit.Name)
		applied.paths = addMissing(applied.paths, unitFile)
	}
	for _, file := range append(osc.Spec.Files, osc.Status.ExtensionFiles...) {
		if removable(file.Path) {
			applied.paths = addMissing(applied.paths, path.Clean(file.Path))
		}
	}
	return applied, nil
}

func addMissing(list []string, entry string) []string {
	if slices.Contains(list, entry) {
		return list
	}
	return append(list, entry)
}

func removable(file string) bool {
	cleaned := path.Clean(file)
	return slices.ContainsFunc(removableDirs, func(dir string) bool { return strings.HasPrefix(cleaned, dir) })
}
