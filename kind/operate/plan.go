package operate

import (
	"context"
	"fmt"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/status"
)

// Plan describes what an operation would do. The name is the name of its command.
func Plan(ctx context.Context, t *kind.Testbed, name string) ([]string, error) {
	for _, verb := range []shootVerb{
		verbApply, verbReconcile, verbDisable, verbHibernate, verbWake, verbRotateStart, verbRotateComplete, verbDelete, verbMigrate, verbRestore,
	} {
		if verb.name != name {
			continue
		}
		status, err := status.OfShoot(ctx, t)
		if err != nil {
			return nil, err
		}
		if err := verb.possible(status); err != nil {
			return nil, err
		}
		return []string{fmt.Sprintf("run gardenlet's flow for %s, which is %s, until: %s", status.Namespace, status.Stage, verb.step)}, nil
	}
	return nil, fmt.Errorf("unknown operation %q on the shoot", name)
}
