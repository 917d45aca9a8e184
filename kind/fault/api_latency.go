package fault

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/fault/nodescript"
	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
	"github.com/gardener-extensions/registry-cache/kind/image"
)

// delayProgram runs on the node of an API server whose answers are delayed.
var delayProgram = image.Binary{Name: "testbed-delay", Package: kind.ModulePath + "/kind/fault/delay/testbed-delay"}

// apiLatency delays answers with a proxy on the API server's node: some kernels lack tc netem.
type apiLatency struct {
	onNodes
	testbed *kind.Testbed
	node    *cluster.Node
	program string // path on the node
}

func delayAPIServer(ctx context.Context, t *kind.Testbed, f spec.Fault) (injection, error) {
	c := clusterOf(t, f.Target)
	api, err := client.New(c.RESTConfig(), client.Options{})
	if err != nil {
		return nil, fmt.Errorf("client for %s: %w", c.Name(), err)
	}
	service := &corev1.Service{}
	if err := api.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: "kubernetes"}, service); err != nil {
		return nil, fmt.Errorf("get the addresses of the API server: %w", err)
	}
	node := c.ControlPlane()
	program := "/opt/testbed-delay-" + f.ID // /run is mounted noexec
	argument := nodescript.DelayArgument(program, time.Duration(f.Delay), apiServerPort(node), service.Spec.ClusterIPs)
	return apiLatency{onEach([]*cluster.Node{node}, f, nodescript.DelayAnswers, argument), t, node, program}, nil
}

// Available checks on the node whether the proxy and its redirects can be set up.
func (l apiLatency) Available(ctx context.Context) error {
	_, err := runScript(ctx, l.node, nodescript.Check(l.method, l.arguments[l.node])...)
	return err
}

// Inject copies the proxy to the node and redirects connections for the API server to it. The copy
// stays until the fault ends.
func (l apiLatency) Inject(ctx context.Context) error {
	built, err := l.testbed.Build(ctx, delayProgram)
	if err != nil {
		return err
	}
	content, err := os.ReadFile(built[0].Executable)
	if err != nil {
		return fmt.Errorf("read %s: %w", delayProgram.Name, err)
	}
	if err := l.node.WriteFile(ctx, l.program, 0o755, content); err != nil {
		return err
	}
	return l.onNodes.Inject(ctx)
}

// Clear ends the fault and deletes the proxy, even if Inject never ran.
func (l apiLatency) Clear(ctx context.Context) error {
	_, removed := l.node.Exec(ctx, "rm", "-f", "--", l.program)
	return errors.Join(l.onNodes.Clear(ctx), removed)
}
