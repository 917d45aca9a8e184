package fault

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/fault/nodescript"
	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
)

type injection interface {
	// Available returns an error if the fault cannot be applied now.
	Available(ctx context.Context) error
	// Inject applies the fault, which ends after its duration unless only a command can end it.
	Inject(ctx context.Context) error
	// Clear ends the fault. It also works if Inject failed or never ran, or if the fault has ended.
	Clear(ctx context.Context) error
}

// prepare returns the injection of a fault. It changes nothing.
type prepare func(ctx context.Context, t *kind.Testbed, f spec.Fault) (injection, error)

type roleAndKind struct {
	role spec.Role
	kind spec.Kind
}

// injections has an entry for each kind of fault. A new kind also needs an entry in spec's shapes.
var injections = map[roleAndKind]prepare{
	{spec.Upstream, spec.Status}:      changeAnswers,
	{spec.Upstream, spec.Latency}:     changeAnswers,
	{spec.Upstream, spec.Hang}:        changeAnswers,
	{spec.Upstream, spec.Slow}:        changeAnswers,
	{spec.Upstream, spec.Reset}:       changeAnswers,
	{spec.Upstream, spec.Truncate}:    changeAnswers,
	{spec.Upstream, spec.WrongBytes}:  changeAnswers,
	{spec.Upstream, spec.Credentials}: changeAnswers,
	{spec.Upstream, spec.Token}:       changeAnswers,
	{spec.Upstream, spec.Profile}:     changeAnswers,
	{spec.Upstream, spec.ExpiredTLS}:  expireCertificate,
	{spec.Upstream, spec.Refuse}:      filterAddresses(nodescript.Reject),
	{spec.Upstream, spec.Blackhole}:   filterAddresses(nodescript.Drop),
	{spec.Upstream, spec.DNS}:         rejectDNS,

	{spec.Cache, spec.Status}:          replaceCache,
	{spec.Cache, spec.ExpiredTLS}:      replaceCache,
	{spec.Cache, spec.Refuse}:          filterAddresses(nodescript.Reject),
	{spec.Cache, spec.Blackhole}:       filterAddresses(nodescript.Drop),
	{spec.Cache, spec.Stop}:            onNodesOfPods(nodescript.StopPods, podName),
	{spec.Cache, spec.Kill}:            killPods,
	{spec.Cache, spec.RecreateService}: recreateService,
	{spec.Cache, spec.DiskFull}:        onNodesOfPods(nodescript.FillVolumes, volumesOf),

	{spec.Node, spec.KubeletStop}:       stopKubelet,
	{spec.Node, spec.ContainerdRestart}: restartContainerd,
	{spec.Node, spec.Loss}:              loseMachine,

	{spec.Seed, spec.Stop}:     onAPIServer(nodescript.StopPods, apiServerPod),
	{spec.Seed, spec.Refuse}:   onAPIServer(nodescript.RejectPort, apiServerPort),
	{spec.Seed, spec.Latency}:  delayAPIServer,
	{spec.Shoot, spec.Stop}:    onAPIServer(nodescript.StopPods, apiServerPod),
	{spec.Shoot, spec.Refuse}:  onAPIServer(nodescript.RejectPort, apiServerPort),
	{spec.Shoot, spec.Latency}: delayAPIServer,

	{spec.Extension, spec.Stop}: onNodesOfPods(nodescript.StopPods, podName),
	{spec.Extension, spec.Kill}: killPods,
}

func injectionOf(ctx context.Context, t *kind.Testbed, f spec.Fault) (injection, error) {
	prepared, found := injections[roleAndKind{f.Target.Role, f.Kind}]
	if !found {
		return nil, fmt.Errorf("fault %s of %s has no injection", f.Kind, f.Target.Role)
	}
	return prepared(ctx, t, f)
}

// activeInjection returns an injection on which only Clear may be called. It asks no API server.
func activeInjection(ctx context.Context, t *kind.Testbed, f spec.Fault) (injection, error) {
	switch {
	case f.AppliedByUpstream():
		return changeAnswers(ctx, t, f)
	case f.Kind == spec.Loss:
		return loseMachine(ctx, t, f)
	}
	return onEach(t.Nodes(), f, "", ""), nil
}

func rejectDNS(_ context.Context, t *kind.Testbed, f spec.Fault) (injection, error) {
	question, err := nodescript.DNSQuestion(f.Target.Name)
	return onEach(t.Shoot.Nodes(), f, nodescript.RejectDNS, question), err
}

func stopKubelet(_ context.Context, t *kind.Testbed, f spec.Fault) (injection, error) {
	node, err := shootNode(t, f)
	return onEach([]*cluster.Node{node}, f, nodescript.StopUnit, kind.KubeletUnit), err
}

func restartContainerd(_ context.Context, t *kind.Testbed, f spec.Fault) (injection, error) {
	node, err := shootNode(t, f)
	return oneShot(func(ctx context.Context) error {
		_, err := node.Exec(ctx, "systemctl", "restart", kind.ContainerdUnit)
		return err
	}), err
}

func shootNode(t *kind.Testbed, f spec.Fault) (*cluster.Node, error) {
	node := t.Shoot.Node(f.Target.Name)
	if node == nil {
		return nil, fmt.Errorf("the shoot has no node %s", f.Target.Name)
	}
	return node, nil
}

func onAPIServer(method nodescript.Method, argument func(*cluster.Node) string) prepare {
	return func(_ context.Context, t *kind.Testbed, f spec.Fault) (injection, error) {
		node := clusterOf(t, f.Target).ControlPlane()
		return onEach([]*cluster.Node{node}, f, method, argument(node)), nil
	}
}

// apiServerPod returns the API server's static pod as <namespace>/<name>.
func apiServerPod(node *cluster.Node) string {
	return metav1.NamespaceSystem + "/kube-apiserver-" + node.Name()
}

func apiServerPort(*cluster.Node) string { return "6443" }

func clusterOf(t *kind.Testbed, target spec.Target) *cluster.Cluster {
	if target.Role == spec.Seed || target.Role == spec.Extension {
		return t.Seed
	}
	return t.Shoot
}

// oneShot is an injection that is a single action. Clear does nothing.
type oneShot func(context.Context) error

func (oneShot) Available(context.Context) error { return nil }

func (act oneShot) Inject(ctx context.Context) error { return act(ctx) }

func (oneShot) Clear(context.Context) error { return nil }

type unsupported struct{ reason string }

func (u unsupported) Error() string { return "not supported by the testbed: " + u.reason }

// EnvironmentError marks the error as an environment error: internal/program exits with code 3.
func (unsupported) EnvironmentError() {}
