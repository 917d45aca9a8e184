//go:build e2e

package nodeless

import (
	"context"
	"fmt"
	"strings"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"

	"github.com/gardener-extensions/registry-cache/e2e/rig"
)

// hibernateInvalid proves that even a Shoot with an invalid config can be hibernated: a condition
// reports the mistake, and only the wake-up fails.
func hibernateInvalid() rig.Scenario {
	bad := rig.BadConfigs[0]
	var before string
	return rig.New("hibernate-invalid",
		rig.Prove("alpha and beta are cached", func(ctx context.Context, p *rig.Run) {
			cached(rig.Alpha, rig.Beta)(ctx, p)
			before = p.StateOfCaches(ctx, rig.Alpha, rig.Beta)
		}),

		rig.Prove("with a bad config the shoot hibernates, and a condition names the field", func(ctx context.Context, p *rig.Run) {
			shoot := shootWith(p, rig.ProviderConfig(bad.Caches))
			for range 2 { // the second time, the API server of the Shoot is unreachable
				p.Check(p.Session.Testbed.Gardenlet.Hibernate(ctx, shoot))
				if state := rig.StateOf(p.Extension(ctx)); state != gardencorev1beta1.LastOperationStateSucceeded {
					p.Fatalf("the Extension is %s, want Succeeded", state)
				}
			}
			awaitComplaint(ctx, p, bad.Field)
			p.Evidence("hibernated twice with a bad config: Succeeded, and a condition names %s", bad.Field)
		}),

		rig.Prove("it fails to wake up with the bad config, and nothing changes", func(ctx context.Context, p *rig.Run) {
			shoot := shootWith(p, rig.ProviderConfig(bad.Caches))
			shoot.Spec.Hibernation = &gardencorev1beta1.Hibernation{}
			if message := p.Refused(ctx, shoot, bad.Field); !strings.Contains(message, bad.Field) {
				p.Fatalf("lastError does not name %s: %s", bad.Field, message)
			}
			if now := p.StateOfCaches(ctx, rig.Alpha, rig.Beta); now != before {
				p.Fatalf("caches changed:\nbefore:\n%s\nafter:\n%s", before, now)
			}
		}),

		rig.Prove("a good config wakes it up", cached(rig.Alpha, rig.Beta)),
	)
}

// awaitComplaint waits until a condition of the Extension that is not True contains the word.
func awaitComplaint(ctx context.Context, p *rig.Run, word string) {
	p.Helper()
	p.Await(ctx, "a condition of the Extension contains "+word, 30*time.Second, func(ctx context.Context) (bool, string, error) {
		extension, err := rig.GetExtension(ctx, p)
		if err != nil {
			return false, "", err
		}
		for _, condition := range extension.Status.Conditions {
			if condition.Status != gardencorev1beta1.ConditionTrue && strings.Contains(condition.Message, word) {
				return true, "", nil
			}
		}
		return false, fmt.Sprintf("%v", extension.Status.Conditions), nil
	})
}
