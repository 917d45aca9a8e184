// Package cluster manages one kind cluster of the testbed and its nodes. It creates the cluster
// with kind's library, or verifies an existing one and rebuilds it if it is broken. It then adds
// what kind does not provide: the pod network, and the testbed's CA in the nodes' trust store.
//
// The functions that generate kind's configuration and files for nodes depend only on their
// arguments. Other packages contain what is specific to Gardener, upstream registries or the
// content of clusters. The package never touches the user's own kubeconfig.
package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kind "sigs.k8s.io/kind/pkg/cluster"
	"sigs.k8s.io/kind/pkg/log"

	"github.com/gardener-extensions/registry-cache/kind/command"
	"github.com/gardener-extensions/registry-cache/kind/file"
)

const pollInterval = 300 * time.Millisecond

// Cluster is a kind cluster and its nodes. Its methods are safe for concurrent use.
type Cluster struct {
	name     string
	stock    bool
	provider *kind.Provider
	nodes    []*Node
	rest     *rest.Config
	client   client.Client
	internal []byte
	// podNetwork is locked while routes are read and changed: several machines may join at once.
	podNetwork sync.Mutex
}

// ErrNotFound reports that a cluster does not exist: it has no containers, running or stopped.
var ErrNotFound = errors.New("does not exist")

// Load returns a cluster that Ensure created. It needs the kubeconfig file, but neither verifies
// nor changes the cluster. The error wraps ErrNotFound if the cluster does not exist.
func Load(ctx context.Context, name, kubeconfig string) (*Cluster, error) {
	c, err := find(ctx, name)
	if err != nil {
		return nil, err
	}
	if len(c.nodes) == 0 {
		return nil, fmt.Errorf("cluster %s %w: run `testbed up` first", name, ErrNotFound)
	}
	return c, c.connect(kubeconfig)
}

func newProvider() *kind.Provider {
	// The testbed reports progress and errors itself.
	return kind.NewProvider(kind.ProviderWithDocker(), kind.ProviderWithLogger(log.NoopLogger{}))
}

// CollectLogs writes to a folder what `kind export logs` writes: the logs of a cluster's nodes and
// pods. It may block while a node does not answer.
func CollectLogs(name, folder string) error {
	if err := newProvider().CollectLogs(name, folder); err != nil {
		return fmt.Errorf("collect the logs of cluster %s: %w", name, err)
	}
	return nil
}

// find returns the cluster with all its nodes, running or not, without connecting to it.
func find(ctx context.Context, name string) (*Cluster, error) {
	c := &Cluster{name: name, provider: newProvider()}
	found, err := c.provider.ListInternalNodes(name)
	if err != nil {
		return nil, fmt.Errorf("listing the nodes of cluster %s: %w", name, command.Explain(ctx, err))
	}
	for _, n := range found {
		isControlPlane := n.String() == nodeNames(Config{Name: name})[0]
		c.nodes = append(c.nodes, &Node{kind: n, cluster: c, controlPlane: isControlPlane, agent: agentOf(n.String())})
	}
	slices.SortFunc(c.nodes, func(a, b *Node) int { return cmp.Compare(a.Name(), b.Name()) })
	return c, nil
}

func (c *Cluster) connect(kubeconfig string) error {
	data, err := os.ReadFile(kubeconfig)
	if err != nil {
		return fmt.Errorf("kubeconfig of cluster %s: %w", c.name, err)
	}
	if c.rest, err = clientcmd.RESTConfigFromKubeConfig(data); err != nil {
		return fmt.Errorf("kubeconfig %s: %w", kubeconfig, err)
	}
	c.rest.QPS = -1 // no limit: the limiter's error at the end of a wait would hide what was missing
	if c.client, err = client.New(c.rest, client.Options{}); err != nil {
		return fmt.Errorf("client for cluster %s: %w", c.name, err)
	}
	c.internal, err = internalKubeconfig(data, c.ControlPlane().Name())
	return err
}

// exportKubeconfig overwrites the kubeconfig file. kind's own export merges into an existing file,
// and fails on the lock file that a killed process leaves behind.
func (c *Cluster) exportKubeconfig(ctx context.Context, path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	text, err := c.provider.KubeConfig(c.name, false)
	if err != nil {
		return fmt.Errorf("kubeconfig of cluster %s: %w", c.name, command.Explain(ctx, err))
	}
	return file.Replace(path, []byte(text), 0o600)
}

// internalKubeconfig returns external with another address of the API server: the control plane's
// node name, which Docker's network resolves.
func internalKubeconfig(external []byte, controlPlane string) ([]byte, error) {
	config, err := clientcmd.Load(external)
	if err != nil {
		return nil, fmt.Errorf("decoding the kubeconfig: %w", err)
	}
	for _, server := range config.Clusters {
		server.Server = "https://" + controlPlane + ":6443"
	}
	return clientcmd.Write(*config)
}

// Name returns the name of the kind cluster.
func (c *Cluster) Name() string { return c.name }

// Nodes returns the control plane node, followed by the workers, sorted by name.
func (c *Cluster) Nodes() []*Node {
	return append([]*Node{c.ControlPlane()}, c.Workers()...)
}

// ControlPlane returns the one control plane node.
func (c *Cluster) ControlPlane() *Node {
	return c.nodes[max(0, slices.IndexFunc(c.nodes, func(n *Node) bool { return n.controlPlane }))]
}

// Workers returns all nodes except the control plane, sorted by name.
func (c *Cluster) Workers() []*Node {
	return slices.DeleteFunc(slices.Clone(c.nodes), func(n *Node) bool { return n.controlPlane })
}

// RESTConfig returns a copy of the configuration for cluster-admin access from this machine.
func (c *Cluster) RESTConfig() *rest.Config { return rest.CopyConfig(c.rest) }

// InternalKubeconfig returns a cluster-admin kubeconfig for pods and for containers on Docker's
// kind network. Its server is the control plane's node name.
func (c *Cluster) InternalKubeconfig() []byte { return slices.Clone(c.internal) }

// Node returns the node with this name, or nil.
func (c *Cluster) Node(name string) *Node {
	for _, n := range c.nodes {
		if n.Name() == name {
			return n
		}
	}
	return nil
}

// Names returns the names of the nodes.
func Names(nodes []*Node) []string {
	var names []string
	for _, n := range nodes {
		names = append(names, n.Name())
	}
	return names
}
