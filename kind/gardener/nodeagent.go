package gardener

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	nodeagentconfigv1alpha1 "github.com/gardener/gardener/pkg/apis/config/nodeagent/v1alpha1"
)

// Node is the node of a cluster on which gardener-node-agent is installed.
type Node interface {
	// Name is the node's name, which is its host name too.
	Name() string
	// Exec runs a command on the node and returns its standard output. The error of a failed command carries its output.
	Exec(ctx context.Context, argv ...string) (stdout string, err error)
	// WriteFile writes a file atomically, creating the directories above it.
	WriteFile(ctx context.Context, path string, mode fs.FileMode, data []byte) error
}

// NodeAgent is a gardener-node-agent for the nodes of one worker pool.
type NodeAgent struct {
	// Binary is the statically linked gardener-node-agent, built with Ldflags.
	Binary []byte
	// Kubeconfig leads to the shoot from a node. Credentials must be inline: gardener-node-agent refuses files.
	Kubeconfig []byte
	// SecretName is the name of the Secret in the shoot's kube-system that holds the pool's operating system config.
	SecretName string
	// KubernetesVersion is the version of the node's kubelet.
	KubernetesVersion string
}

// Install brings gardener-node-agent onto the node and starts it, and returns when its unit is active. What is there
// already with the same content is not written again; the unit is restarted only if something changed.
//
// Instead of a bootstrap token it is given a kubeconfig, so it asks for no certificate. All else is as on a machine that
// Gardener made: binary, configuration, machine name, unit.
func (a NodeAgent) Install(ctx context.Context, node Node) error {
	files, err := a.files(node.Name())
	if err != nil {
		return err
	}
	present, err := readState(ctx, node, files)
	if err != nil {
		return fmt.Errorf("install gardener-node-agent on %s: %w", node.Name(), err)
	}
	outdated := present.outdated(files)
	for _, file := range outdated {
		if err := node.WriteFile(ctx, file.path, file.mode, file.data); err != nil {
			return fmt.Errorf("install gardener-node-agent on %s: write %s: %w", node.Name(), file.path, err)
		}
	}
	for _, argv := range startCommands(len(outdated) > 0, present.active) {
		if _, err := node.Exec(ctx, argv...); err != nil {
			return fmt.Errorf("start gardener-node-agent on %s: %w", node.Name(), err)
		}
	}
	return nil
}

// startCommands returns what has to be run after the files are in place.
func startCommands(changed, active bool) [][]string {
	unit := nodeagentconfigv1alpha1.UnitName
	switch {
	case changed:
		return [][]string{{"systemctl", "daemon-reload"}, {"systemctl", "enable", unit}, {"systemctl", "restart", unit}}
	case !active:
		return [][]string{{"systemctl", "enable", "--now", unit}}
	default:
		return nil
	}
}

// nodeFile is a file that belongs to gardener-node-agent.
type nodeFile struct {
	path string
	mode fs.FileMode
	data []byte
}

// nodeState is what is on a node before an installation.
type nodeState struct {
	// sums are lines of sha256sum for the files that are there.
	sums []string
	// active says that the unit is enabled and runs.
	active bool
}

// readScript prints the checksums of the files in its arguments, without those that are missing, and then "active" if the
// unit is. It is one script because a command on a node takes longer than all it does.
const readScript = `unit=$1; shift
sha256sum -- "$@" 2>/dev/null
systemctl is-enabled --quiet "$unit" && systemctl is-active "$unit"
true`

func readState(ctx context.Context, node Node, files []nodeFile) (nodeState, error) {
	argv := []string{"sh", "-c", readScript, "sh", nodeagentconfigv1alpha1.UnitName}
	for _, file := range files {
		argv = append(argv, file.path)
	}
	output, err := node.Exec(ctx, argv...)
	if err != nil {
		return nodeState{}, err
	}
	lines := strings.Split(strings.TrimSpace(output), "\n")
	return nodeState{sums: lines, active: lines[len(lines)-1] == "active"}, nil
}

// outdated returns the files whose content differs from what is on the node, or that are not there.
func (s nodeState) outdated(files []nodeFile) []nodeFile {
	return slices.DeleteFunc(files, func(file nodeFile) bool {
		sum := sha256.Sum256(file.data)
		return slices.Contains(s.sums, hex.EncodeToString(sum[:])+"  "+file.path)
	})
}
