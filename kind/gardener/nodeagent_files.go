package gardener

import (
	"fmt"

	"github.com/Masterminds/semver/v3"
	nodeagentconfigv1alpha1 "github.com/gardener/gardener/pkg/apis/config/nodeagent/v1alpha1"
	"github.com/gardener/gardener/pkg/component/extensions/operatingsystemconfig/original/components/nodeagent"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"
)

// nodeAgentKubeconfig is where the kubeconfig lies. It is not KubeconfigFilePath: that file gardener-node-agent writes
// itself after a bootstrap, and it expects to own it.
const nodeAgentKubeconfig = nodeagentconfigv1alpha1.CredentialsDir + "/kubeconfig-testbed"

// files returns what lies on the node with the given name.
func (a NodeAgent) files(nodeName string) ([]nodeFile, error) {
	config, err := a.config()
	if err != nil {
		return nil, err
	}
	return []nodeFile{
		{nodeagentconfigv1alpha1.BinaryDir + "/gardener-node-agent", 0o755, a.Binary},
		{nodeagentconfigv1alpha1.MachineNameFilePath, 0o600, []byte(nodeName)},
		{nodeAgentKubeconfig, 0o600, a.Kubeconfig},
		{nodeagentconfigv1alpha1.BaseDir + "/config-" + Version + ".yaml", 0o600, config},
		{"/etc/systemd/system/" + nodeagentconfigv1alpha1.UnitName, 0o644, []byte(nodeagent.UnitContent())},
	}, nil
}

// config returns the configuration that gardenlet computes for the agent, plus the kubeconfig.
func (a NodeAgent) config() ([]byte, error) {
	version, err := semver.NewVersion(a.KubernetesVersion)
	if err != nil {
		return nil, fmt.Errorf("gardener-node-agent: Kubernetes version %q: %w", a.KubernetesVersion, err)
	}
	server, err := apiServer(a.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("gardener-node-agent: kubeconfig: %w", err)
	}
	config := nodeagent.ComponentConfig(a.SecretName, version, server, nil)
	config.TypeMeta = metav1.TypeMeta{
		APIVersion: nodeagentconfigv1alpha1.SchemeGroupVersion.String(),
		Kind:       "NodeAgentConfiguration",
	}
	config.ClientConnection.Kubeconfig = nodeAgentKubeconfig
	data, err := yaml.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("encode the configuration of gardener-node-agent: %w", err)
	}
	return data, nil
}

// apiServer returns the URL of the server that the kubeconfig's current context points at.
func apiServer(kubeconfig []byte) (string, error) {
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return "", err
	}
	return config.Host, nil
}
