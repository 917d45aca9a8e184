package kind

import (
	"context"
	"fmt"
	"slices"

	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/fault"
)

// kubeletUnit and containerdUnit are units of systemd on every node.
const (
	kubeletUnit    = "kubelet.service"
	containerdUnit = "containerd.service"
)

// injection returns how the fault is brought about, by its kind and its target.
func (t *Testbed) injection(ctx context.Context, f fault.Fault) (injection, error) {
	if f.Kind == fault.ExpiredTLS {
		return t.expired(ctx, f)
	}
	if f.OfAnswers() {
		return answers{t.Upstream(f.Target.Name), f}, nil
	}
	switch f.Target.Role {
	case fault.Upstream:
		return t.upstreamInjection(ctx, f)
	case fault.Cache:
		return t.cacheInjection(ctx, f)
	case fault.Node:
		return t.nodeInjection(f)
	case fault.Seed:
		return t.serverInjection(ctx, t.seed, f)
	case fault.Shoot:
		return t.serverInjection(ctx, t.shoot, f)
	case fault.Extension:
		return t.extensionInjection(ctx, f)
	}
	return nil, noInjection(f)
}

func noInjection(f fault.Fault) error {
	return fmt.Errorf("fault %s of %s has no injection", f.Kind, f.Target.Role)
}

// upstreamInjection is for what keeps the shoot from an upstream.
func (t *Testbed) upstreamInjection(ctx context.Context, f fault.Fault) (injection, error) {
	switch f.Kind {
	case fault.Refuse:
		return t.unreachable(ctx, f, fault.Reject)
	case fault.Blackhole:
		return t.unreachable(ctx, f, fault.Drop)
	case fault.DNS:
		question, err := fault.Question(f.Target.Name)
		return t.onShoot(f, fault.RejectQuestion, question), err
	}
	return nil, noInjection(f)
}

func (t *Testbed) cacheInjection(ctx context.Context, f fault.Fault) (injection, error) {
	switch f.Kind {
	case fault.Refuse:
		return t.unreachable(ctx, f, fault.Reject)
	case fault.Blackhole:
		return t.unreachable(ctx, f, fault.Drop)
	case fault.RecreateService:
		return t.recreated(ctx, f)
	}
	pods, err := t.cachePods(ctx, f.Target.Name)
	if err != nil {
		return nil, err
	}
	switch f.Kind {
	case fault.Stop:
		return pods.stopped(f)
	case fault.Kill:
		return moment{pods.kill}, nil
	case fault.DiskFull:
		return pods.full(f)
	}
	return nil, noInjection(f)
}

func (t *Testbed) extensionInjection(ctx context.Context, f fault.Fault) (injection, error) {
	pods, err := t.extensionPods(ctx)
	if err != nil {
		return nil, err
	}
	switch f.Kind {
	case fault.Stop:
		return pods.stopped(f)
	case fault.Kill:
		return moment{pods.kill}, nil
	}
	return nil, noInjection(f)
}

func (t *Testbed) nodeInjection(f fault.Fault) (injection, error) {
	node := nodeNamed(t.shoot, f.Target.Name)
	if node == nil {
		return nil, fmt.Errorf("the shoot has no node %s", f.Target.Name)
	}
	switch f.Kind {
	case fault.KubeletStop:
		return onNodes{f, fault.StopUnit, map[*cluster.Node]string{node: kubeletUnit}}, nil
	case fault.ContainerdRestart:
		return moment{func(ctx context.Context) error {
			_, err := node.Exec(ctx, "systemctl", "restart", containerdUnit)
			return err
		}}, nil
	case fault.Loss:
		return t.lost(f, node)
	}
	return nil, noInjection(f)
}

// clearing is the injection of a fault that is active, for its Clear alone: nothing is looked up.
func (t *Testbed) clearing(f fault.Fault) (injection, error) {
	switch {
	case f.OfAnswers():
		return answers{t.Upstream(f.Target.Name), f}, nil
	case f.Kind == fault.Loss:
		return t.nodeInjection(f)
	}
	everywhere := onNodes{fault: f, arguments: map[*cluster.Node]string{}}
	for _, node := range t.allNodes() {
		everywhere.arguments[node] = ""
	}
	return everywhere, nil
}

// allNodes are those of both clusters.
func (t *Testbed) allNodes() []*cluster.Node { return slices.Concat(t.seed.Nodes(), t.shoot.Nodes()) }

// moment is a fault without an end of its own: there is nothing to clear.
type moment struct {
	happen func(context.Context) error
}

func (moment) Available(context.Context) error { return nil }

func (m moment) Inject(ctx context.Context) error { return m.happen(ctx) }

func (moment) Clear(context.Context) error { return nil }

// impossible is a fault that cannot be had here, with the reason.
type impossible struct{ reason string }

func (i impossible) Available(context.Context) error { return i }
func (i impossible) Inject(context.Context) error    { return i }
func (impossible) Clear(context.Context) error       { return nil }
func (i impossible) Error() string                   { return "not to be had here: " + i.reason }

// EnvironmentError marks the error for internal/program.
func (impossible) EnvironmentError() {}
