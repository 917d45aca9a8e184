//go:build e2e

package e2e

import (
	"context"
	"strings"
	"time"

	v1beta1helper "github.com/gardener/gardener/pkg/api/core/v1beta1/helper"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/e2e/rig"
)

// Path and content of the hosts.toml of an owner who takes over alpha's mirror on a node.
const (
	ownersHosts = rig.OwnersFolder + "/hosts.toml"
	ownersText  = "server = \"http://" + rig.Alpha + "\"\n"
)

// linkedHosts proves that the owner of a node can replace a hosts.toml with a link: the removal of
// the cache still ends, cleans the other nodes, and changes neither the link nor its target.
func linkedHosts() rig.Scenario {
	path := rig.HostsPath(rig.Alpha)
	state := func(ctx context.Context, p *rig.Run) string {
		out, err := p.Worker(0).Script(ctx, `readlink -- "$1" && cat "$2" && stat -c '%i %y' "$1" "$2"`, path, ownersHosts)
		p.Check(err)
		return out
	}
	var before string
	return rig.New("linked-hosts",
		rig.Prove("alpha and beta are cached, and an owner links alpha's hosts.toml on a worker", func(ctx context.Context, p *rig.Run) {
			rig.Cached(rig.Alpha, rig.Beta)(ctx, p)
			worker := p.Worker(0)
			p.Afterwards(ctx, func(ctx context.Context) error {
				_, err := worker.Script(ctx, rig.UndoScript)
				return err
			})
			p.Check(worker.WriteFile(ctx, ownersHosts, 0o644, []byte(ownersText)))
			_, err := worker.Script(ctx, `ln -sfn -T -- "$2" "$1"`, path, ownersHosts)
			p.Check(err)
			before = state(ctx, p)
		}),

		rig.Prove("alpha is removed, and every node counts as cleaned", func(ctx context.Context, p *rig.Run) {
			start := time.Now()
			p.Reconcile(ctx, rig.Beta)
			p.AwaitCaches(ctx, rig.Beta)
			condition := v1beta1helper.GetCondition(p.Extension(ctx).Status.Conditions, v1alpha3.ConditionNodesCleaned)
			if condition == nil || condition.Status != gardencorev1beta1.ConditionTrue {
				p.Fatalf("condition %s is %+v, want True", v1alpha3.ConditionNodesCleaned, condition)
			}
			provePathsAbsent(ctx, p, p.Worker(1), path)
			p.NoCleanerLeft(ctx)
			p.Evidence("removed in %s although a node has a linked hosts.toml", rig.Seconds(time.Since(start)))
		}),

		rig.Prove("the owner's link and its target are unchanged", func(ctx context.Context, p *rig.Run) {
			if now := state(ctx, p); now != before {
				p.Fatalf("the owner's files changed:\nbefore:\n%s\nafter:\n%s", before, now)
			}
			if !strings.Contains(before, ownersText) {
				p.Fatalf("the link did not lead to the owner's file, so this proves nothing:\n%s", before)
			}
			proveDirect(ctx, p, rig.Alpha, rig.MaxPull)
		}),
	)
}
