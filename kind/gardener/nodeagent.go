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
	outdated, err := outdatedFiles(ctx, node, files)
	if err != nil {
		return fmt.Errorf("install gardener-node-agent on %s: %w", node.Name(), err)
	}
	for _, file := range outdated {
		if err := node.WriteFile(ctx, file.path, file.mode, file.data); err != nil {
			return fmt.Errorf("install gardener-node-agent on %s: write %s: %w", node.Name(), file.path, err)
		}
	}
	for _, argv := range startCommands(len(outdated) > 0) {
		if _, err := node.Exec(ctx, argv...); err != nil {
			return fmt.Errorf("start gardener-node-agent on %s: %w", node.Name(), err)
		}
	}
	return nil
}

func startCommands(changed bool) [][]string {
	unit := nodeagentconfigv1alpha1.UnitName
	if !changed {
		return [][]string{{"systemctl", "enable", "--now", unit}}
	}
	return [][]string{{"systemctl", "daemon-reload"}, {"systemctl", "enable", unit}, {"systemctl", "restart", unit}}
}

// nodeFile is a file that belongs to gardener-node-agent.
type nodeFile struct {
	path string
	mode fs.FileMode
	data []byte
}

// outdatedFiles returns the files whose content differs from what is on the node, or that are not there.
func outdatedFiles(ctx context.Context, node Node, files []nodeFile) ([]nodeFile, error) {
	// sha256sum exits with 1 if a file is missing; the files that are there are listed nevertheless.
	argv := []string{"sh", "-c", `sha256sum -- "$@" 2>/dev/null || true`, "sh"}
	for _, file := range files {
		argv = append(argv, file.path)
	}
	output, err := node.Exec(ctx, argv...)
	if err != nil {
		return nil, err
	}
	present := strings.Split(strings.TrimSpace(output), "\n")
	return slices.DeleteFunc(files, func(file nodeFile) bool {
		sum := sha256.Sum256(file.data)
		return slices.Contains(present, hex.EncodeToString(sum[:])+"  "+file.path)
	}), nil
}
