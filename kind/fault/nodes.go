package fault

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/command"
	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
	"github.com/gardener-extensions/registry-cache/kind/upstream"
)

// script applies, ends and lists the faults of a node. It ends a fault after its duration even if
// no process of the testbed is running.
//
//go:embed node.sh
var script string

// argumentFile returns the path of the file with the argument of a fault on a node.
func argumentFile(id string) string { return path.Join("/run/testbed-faults", id, "argument") }

// begin returns the arguments with which script applies the fault and starts its duration.
func begin(f spec.Fault, argument string) ([]string, error) {
	description, err := json.Marshal(f)
	if err != nil {
		return nil, fmt.Errorf("describe fault %s: %w", f.ID, err)
	}
	method, _ := f.Method()
	seconds := strconv.FormatFloat(math.Round(time.Duration(f.For).Seconds()*1000)/1000, 'f', -1, 64)
	return []string{"begin", f.ID, seconds, string(description), method, argument}, nil
}

// parse parses the output of script: one JSON description per line.
func parse(output string) ([]spec.Fault, error) {
	return spec.Decode([]byte("[" + strings.ReplaceAll(strings.TrimSpace(output), "\n", ",") + "]"))
}

// OnNodes injects a fault with a function of node.sh.
type OnNodes struct {
	Fault spec.Fault
	// Arguments maps each node that applies the fault to the argument of the function there.
	Arguments map[*cluster.Node]string
}

// OnEach returns an injection with the same argument on each node.
func OnEach(nodes []*cluster.Node, f spec.Fault, argument string) OnNodes {
	all := OnNodes{f, map[*cluster.Node]string{}}
	for _, node := range nodes {
		all.Arguments[node] = argument
	}
	return all
}

// Inject implements kind.Injection.
func (o OnNodes) Inject(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for node, argument := range o.Arguments {
		group.Go(func() error {
			arguments, err := begin(o.Fault, argument)
			if err != nil {
				return err
			}
			_, err = runScript(ctx, node, arguments...)
			return err
		})
	}
	return group.Wait()
}

// Clear implements kind.Injection.
func (o OnNodes) Clear(ctx context.Context) error {
	var (
		group  sync.WaitGroup // a node that fails must not stop the others
		mu     sync.Mutex
		failed error
	)
	for node := range o.Arguments {
		group.Go(func() {
			_, err := runScript(ctx, node, "end", o.Fault.ID)
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
	output, err := node.Script(ctx, script, arguments...)
	var failed *command.Error
	if !errors.As(err, &failed) {
		return output, err
	}
	cause := cmp.Or(failed.Cause, failed.Inner)
	doing := strings.Join(arguments[:min(2, len(arguments))], " ")
	return output, fmt.Errorf("on %s, %q: %w: %s", node.Name(), doing, cause, command.Tail(string(failed.Output), maxErrorLines))
}

// AddressesOf returns all IP addresses of an upstream or a cache: a client may use any of them.
func AddressesOf(ctx context.Context, t *kind.Testbed, target spec.Target) ([]string, error) {
	if target.Role == spec.Cache {
		service, err := t.Extension.Targets.Service(ctx, t, target.Name)
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
