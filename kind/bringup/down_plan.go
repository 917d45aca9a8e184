package bringup

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/command"
	"github.com/gardener-extensions/registry-cache/kind/engine"
	"github.com/gardener-extensions/registry-cache/kind/process"
	"github.com/gardener-extensions/registry-cache/kind/upstream"
)

// The methods below say what their counterparts would do, one line for each thing, and change nothing. They fail for what the
// counterparts would refuse, as far as that is known beforehand, and with the same errors.

// PlanDown is for Down. What Down does not find it does not remove; so it is here.
func PlanDown(ctx context.Context, t *kind.Testbed) ([]string, error) {
	var lines []string
	pids, err := process.Marked("/proc", t.Prefix)
	if err != nil {
		return nil, err
	}
	for _, pid := range pids {
		lines = append(lines, fmt.Sprintf("end process %d", pid))
	}
	if found, err := engine.Attach(ctx); err != nil {
		return nil, err
	} else if found != nil {
		if err := t.CheckOwner(ctx); err != nil {
			return nil, err
		}
		for _, label := range []string{
			"io.x-k8s.kind.cluster=" + t.SeedName(), "io.x-k8s.kind.cluster=" + t.ShootName(), upstream.Label + "=" + t.Prefix,
		} {
			names, err := command.Output(ctx, "docker", "ps", "--all", "--filter", "label="+label, "--format", "{{.Names}}")
			if err != nil {
				return nil, fmt.Errorf("list the containers with label %s: %w", label, err)
			}
			for _, name := range strings.Fields(names) {
				lines = append(lines, "remove container "+name+", with its volumes")
			}
		}
		lines = append(lines, "remove the network of the clusters, and stop an engine that `up` started, if no other testbed uses them")
	}
	if _, err := os.Stat(string(t.State)); err == nil {
		lines = append(lines, "remove folder "+t.Relative(string(t.State)))
	}
	return lines, nil
}
