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
	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
	"github.com/gardener-extensions/registry-cache/kind/image"
)

// delayProgram is what a node runs while its API server is late.
var delayProgram = image.Binary{Name: "testbed-delay", Package: kind.ModulePath + "/kind/fault/delay/testbed-delay"}

// late is an API server whose answers come late: a proxy on its node holds them back. The kernel could do that without one, but tc netem
// is not in every kernel.
type serverDelay struct {
	onNodes
	testbed *kind.Testbed
	node    *cluster.Node
	program string // where it is put on the node
}

func delayServer(ctx context.Context, t *kind.Testbed, c *cluster.Cluster, f spec.Fault) (injection, error) {
	api, err := client.New(c.RESTConfig(), client.Options{})
	if err != nil {
		return nil, fmt.Errorf("client for %s: %w", c.Name(), err)
	}
	service := &corev1.Service{}
	if err := api.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: "kubernetes"}, service); err != nil {
		return nil, fmt.Errorf("look for the addresses of the API server: %w", err)
	}
	node := c.ControlPlane()
	program := "/opt/testbed-delay-" + f.ID // nothing may be executed below /run
	argument := DelayArgument(program, time.Duration(f.Delay), apiServerPort, service.Spec.ClusterIPs)
	return serverDelay{onNodes{f, DelayAnswers, map[*cluster.Node]string{node: argument}}, t, node, program}, nil
}

// Available says what the node lacks.
func (l serverDelay) Available(ctx context.Context) error {
	_, err := faultScript(ctx, l.node, CheckArguments(l.way, l.arguments[l.node])...)
	return err
}

// Inject brings the program onto the node first: it is there before anything leads to it, and goes when the fault ends.
func (l serverDelay) Inject(ctx context.Context) error {
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

// Clear removes the program also where the fault never began.
func (l serverDelay) Clear(ctx context.Context) error {
	_, removing := l.node.Exec(ctx, "rm", "-f", "--", l.program)
	return errors.Join(l.onNodes.Clear(ctx), removing)
}
