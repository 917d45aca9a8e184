package gardener

import (
	"context"
	"fmt"
	"io/fs"
	"time"

	"github.com/Masterminds/semver/v3"
	nodeagentconfigv1alpha1 "github.com/gardener/gardener/pkg/apis/config/nodeagent/v1alpha1"
	"github.com/gardener/gardener/pkg/component/extensions/operatingsystemconfig/original/components/nodeagent"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"
)

// Node is a cluster node on which gardener-node-agent is installed.
type Node interface {
	// Name returns the node's name, which is also its host name.
	Name() string
	// Exec runs a command and returns its standard output. An error contains the output.
	Exec(ctx context.Context, argv ...string) (stdout string, err error)
	// WriteFile writes a file atomically and creates missing parent directories.
	WriteFile(ctx context.Context, path string, mode fs.FileMode, data []byte) error
}

// NodeAgent describes the gardener-node-agent for the nodes of one worker pool.
type NodeAgent struct {
	Binary Binary // the statically linked gardener-node-agent, built with Ldflags
	// Kubeconfig is for the shoot. It contains inline credentials and an address that nodes can reach.
	Kubeconfig        []byte
	SecretName        string // of the Secret in kube-system with the pool's operating system config
	KubernetesVersion string // of the node's kubelet
}

// configTimeout bounds the time from the start of gardener-node-agent until a new machine is
// configured.
const configTimeout = 2 * time.Minute

// Install installs gardener-node-agent on the node, starts it, and returns when its unit is active.
// It writes only files whose content differs, and restarts the unit only if it wrote a file.
//
// Files are compared with installRecord, the checksums of the last installation, so that no node
// reads the large binary again. A file counts as different if it is missing, has another size, or
// was changed after the record was written. If there is no record, all files count as different.
//
// Instead of a bootstrap token the agent gets a kubeconfig, so it requests no certificate.
// Everything else is as on a machine that Gardener created.
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
		if err := file.writeTo(ctx, node); err != nil {
			return fmt.Errorf("install gardener-node-agent on %s: %w", node.Name(), err)
		}
	}
	for _, argv := range startCommands(len(outdated) > 0, present.active) {
		if _, err := node.Exec(ctx, argv...); err != nil {
			return fmt.Errorf("start gardener-node-agent on %s: %w", node.Name(), err)
		}
	}
	if len(outdated) == 0 {
		return nil
	}
	// If the process is interrupted before this, the next installation writes the files again and
	// restarts the unit.
	if err := recordOf(files).writeTo(ctx, node); err != nil {
		return fmt.Errorf("record the installation of gardener-node-agent on %s: %w", node.Name(), err)
	}
	return nil
}

// Configure installs gardener-node-agent on a machine whose kubelet does not run yet, and waits up
// to two minutes until the agent has applied the operating system config.
func (a NodeAgent) Configure(ctx context.Context, node Node) error {
	if err := a.Install(ctx, node); err != nil {
		return err
	}
	failure := "gardener-node-agent on " + node.Name() + " has not applied the operating system config (journalctl -u gardener-node-agent)"
	return Poll(ctx, configTimeout, failure, func(ctx context.Context) error { return a.Applied(ctx, node) })
}

// Applied returns an error if the agent has not applied an operating system config on the node.
func (a NodeAgent) Applied(ctx context.Context, node Node) error {
	_, err := node.Exec(ctx, "test", "-s", nodeagentconfigv1alpha1.LastAppliedOperatingSystemConfigFilePath)
	return err
}

// Restart restarts gardener-node-agent after the kubelet has registered a new node. The agent would
// do this itself, up to ten seconds later.
func (a NodeAgent) Restart(ctx context.Context, node Node) error {
	if _, err := node.Exec(ctx, "systemctl", "restart", nodeagentconfigv1alpha1.UnitName); err != nil {
		return fmt.Errorf("restart gardener-node-agent on %s: %w", node.Name(), err)
	}
	return nil
}

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

// nodeAgentKubeconfig is the path of the kubeconfig. The path KubeconfigFilePath cannot be used:
// gardener-node-agent writes that file itself after a bootstrap.
const nodeAgentKubeconfig = nodeagentconfigv1alpha1.CredentialsDir + "/kubeconfig-testbed"

func (a NodeAgent) files(nodeName string) ([]nodeFile, error) {
	config, err := a.config()
	if err != nil {
		return nil, err
	}
	return []nodeFile{
		{nodeagentconfigv1alpha1.BinaryDir + "/gardener-node-agent", 0o755, a.Binary},
		textFile(nodeagentconfigv1alpha1.MachineNameFilePath, 0o600, nodeName),
		textFile(nodeAgentKubeconfig, 0o600, string(a.Kubeconfig)),
		textFile(nodeagentconfigv1alpha1.BaseDir+"/config-"+Version+".yaml", 0o600, string(config)),
		textFile("/etc/systemd/system/"+nodeagentconfigv1alpha1.UnitName, 0o644, nodeagent.UnitContent()),
	}, nil
}

// config returns the configuration that gardenlet generates for the agent, plus the kubeconfig.
func (a NodeAgent) config() ([]byte, error) {
	version, err := semver.NewVersion(a.KubernetesVersion)
	if err != nil {
		return nil, fmt.Errorf("gardener-node-agent: Kubernetes version %q: %w", a.KubernetesVersion, err)
	}
	shoot, err := clientcmd.RESTConfigFromKubeConfig(a.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("gardener-node-agent: kubeconfig: %w", err)
	}
	config := nodeagent.ComponentConfig(a.SecretName, version, shoot.Host, nil)
	config.TypeMeta = metav1.TypeMeta{APIVersion: nodeagentconfigv1alpha1.SchemeGroupVersion.String(), Kind: "NodeAgentConfiguration"}
	config.ClientConnection.Kubeconfig = nodeAgentKubeconfig
	data, err := yaml.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("encode the configuration of gardener-node-agent: %w", err)
	}
	return data, nil
}
