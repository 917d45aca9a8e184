package fault

import (
	"context"
	"fmt"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
)

// injection returns how the fault is brought about, by its kind and its target.
func injectionOf(ctx context.Context, t *kind.Testbed, f spec.Fault) (injection, error) {
	if f.Kind == spec.ExpiredTLS {
		return expireCertificate(ctx, t, f)
	}
	if f.OfAnswers() {
		return answers{t.Upstream(f.Target.Name), f}, nil
	}
	switch f.Target.Role {
	case spec.Upstream:
		return upstreamInjection(ctx, t, f)
	case spec.Cache:
		return cacheInjection(ctx, t, f)
	case spec.Node:
		return nodeInjection(t, f)
	case spec.Seed:
		return serverInjection(ctx, t, t.Seed, f)
	case spec.Shoot:
		return serverInjection(ctx, t, t.Shoot, f)
	case spec.Extension:
		return extensionInjection(ctx, t, f)
	}
	return nil, noInjection(f)
}

func noInjection(f spec.Fault) error {
	return fmt.Errorf("fault %s of %s has no injection", f.Kind, f.Target.Role)
}

// upstreamInjection is for what keeps the shoot from an upstream.
func upstreamInjection(ctx context.Context, t *kind.Testbed, f spec.Fault) (injection, error) {
	switch f.Kind {
	case spec.Refuse:
		return unreachable(ctx, t, f, Reject)
	case spec.Blackhole:
		return unreachable(ctx, t, f, Drop)
	case spec.DNS:
		question, err := Question(f.Target.Name)
		return onShoot(t, f, RejectQuestion, question), err
	}
	return nil, noInjection(f)
}

func cacheInjection(ctx context.Context, t *kind.Testbed, f spec.Fault) (injection, error) {
	switch f.Kind {
	case spec.Refuse:
		return unreachable(ctx, t, f, Reject)
	case spec.Blackhole:
		return unreachable(ctx, t, f, Drop)
	case spec.RecreateService:
		return recreateService(ctx, t, f)
	}
	pods, err := CachePods(ctx, t, f.Target.Name)
	if err != nil {
		return nil, err
	}
	switch f.Kind {
	case spec.Stop:
		return pods.stopped(f)
	case spec.Kill:
		return instant{pods.kill}, nil
	case spec.DiskFull:
		return pods.full(f)
	}
	return nil, noInjection(f)
}

func extensionInjection(ctx context.Context, t *kind.Testbed, f spec.Fault) (injection, error) {
	pods, err := ExtensionPods(ctx, t)
	if err != nil {
		return nil, err
	}
	switch f.Kind {
	case spec.Stop:
		return pods.stopped(f)
	case spec.Kill:
		return instant{pods.kill}, nil
	}
	return nil, noInjection(f)
}

func nodeInjection(t *kind.Testbed, f spec.Fault) (injection, error) {
	node := cluster.Named(t.Shoot, f.Target.Name)
	if node == nil {
		return nil, fmt.Errorf("the shoot has no node %s", f.Target.Name)
	}
	switch f.Kind {
	case spec.KubeletStop:
		return onNodes{f, StopUnit, map[*cluster.Node]string{node: kind.KubeletUnit}}, nil
	case spec.ContainerdRestart:
		return instant{func(ctx context.Context) error {
			_, err := node.Exec(ctx, "systemctl", "restart", kind.ContainerdUnit)
			return err
		}}, nil
	case spec.Loss:
		return loseMachine(t, f, node)
	}
	return nil, noInjection(f)
}

// clearing is the injection of a fault that is active, for its Clear alone: nothing is looked up.
func clearing(t *kind.Testbed, f spec.Fault) (injection, error) {
	switch {
	case f.OfAnswers():
		return answers{t.Upstream(f.Target.Name), f}, nil
	case f.Kind == spec.Loss:
		return nodeInjection(t, f)
	}
	everywhere := onNodes{fault: f, arguments: map[*cluster.Node]string{}}
	for _, node := range t.Nodes() {
		everywhere.arguments[node] = ""
	}
	return everywhere, nil
}

// moment is a fault without an end of its own: there is nothing to clear.
type instant struct {
	happen func(context.Context) error
}

func (instant) Available(context.Context) error { return nil }

func (m instant) Inject(ctx context.Context) error { return m.happen(ctx) }

func (instant) Clear(context.Context) error { return nil }

// impossible is a fault that cannot be had here, with the reason.
type impossible struct{ reason string }

func (i impossible) Available(context.Context) error { return i }

func (i impossible) Inject(context.Context) error { return i }

func (impossible) Clear(context.Context) error { return nil }

func (i impossible) Error() string { return "not to be had here: " + i.reason }

// EnvironmentError marks the error for internal/program.
func (impossible) EnvironmentError() {}
