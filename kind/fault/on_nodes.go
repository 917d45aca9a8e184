package fault

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/cache"
	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/command"
	"github.com/gardener-extensions/registry-cache/kind/fault/nodescript"
	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
	"github.com/gardener-extensions/registry-cache/kind/upstream"
)

type onNodes struct {
	fault  spec.Fault
	method nodescript.Method
	// arguments maps each node that applies the fault to the argument of the method there.
	arguments map[*cluster.Node]string
}

func onEach(nodes []*cluster.Node, f spec.Fault, method nodescript.Method, argument string) onNodes {
	all := onNodes{f, method, map[*cluster.Node]string{}}
	for _, node := range nodes {
		all.arguments[node] = argument
	}
	return all
}

func (o onNodes) Available(context.Context) error { return nil }

func (o onNodes) Inject(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for node, argument := range o.arguments {
		group.Go(func() error {
			arguments, err := nodescript.Begin(o.fault, o.method, argument)
			if err != nil {
				return err
			}
			_, err = runScript(ctx, node, arguments...)
			return err
		})
	}
	return group.Wait()
}

func (o onNodes) Clear(ctx context.Context) error {
	var (
		group  sync.WaitGroup // a node that fails must not stop the others
		mu     sync.Mutex
		failed error
	)
	for node := range o.arguments {
		group.Go(func() {
			_, err := runScript(ctx, node, nodescript.End(o.fault.ID)...)
			mu.Lock()
			defer mu.Unlock()
			failed = errors.Join(failed, err)
		})
	}
	group.Wait()
	return failed
}

const maxErrorLines = 4

// runScript runs the fault script on a node and returns its output. Errors omit the long script.
func runScript(ctx context.Context, node *cluster.Node, arguments ...string) (string, error) {
	output, err := node.Script(ctx, nodescript.Script, arguments...)
	var failed *command.Error
	if !errors.As(err, &failed) {
		return output, err
	}
	cause := cmp.Or(failed.Cause, failed.Inner)
	doing := strings.Join(arguments[:min(2, len(arguments))], " ")
	return output, fmt.Errorf("on %s, %q: %w: %s", node.Name(), doing, cause, command.Tail(string(failed.Output), maxErrorLines))
}

// filterAddresses applies a method to packets from the shoot's nodes to the target.
func filterAddresses(method nodescript.Method) prepare {
	return func(ctx context.Context, t *kind.Testbed, f spec.Fault) (injection, error) {
		addresses, err := addressesOf(ctx, t, f.Target)
		if err != nil {
			return nil, err
		}
		return onEach(t.Shoot.Nodes(), f, method, strings.Join(addresses, " ")), nil
	}
}

// addressesOf returns all IP addresses of an upstream or a cache: a client may use any of them.
func addressesOf(ctx context.Context, t *kind.Testbed, target spec.Target) ([]string, error) {
	if target.Role == spec.Cache {
		service, err := cache.ServiceOf(ctx, t, target.Name)
		if err != nil {
			return nil, err
		}
		return service.Spec.ClusterIPs, nil
	}
	var all []string
	for _, address := range t.Upstream(target.Name).Addresses() {
		all = append(all, address.String())
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s has no address: %w", target, upstream.ErrNotRunning)
	}
	return all, nil
}
