//go:build e2e

package e2e

import (
	"context"
	"encoding/json"

	gardencorev1 "github.com/gardener/gardener/pkg/apis/core/v1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/e2e/rig"
)

// gardenUpgrade proves that a changed ControllerDeployment updates the extension under a running
// Shoot, without a slow or failed pull.
func gardenUpgrade() rig.Scenario {
	var pulls *stream
	return rig.New("garden-upgrade",
		rig.Prove("alpha is cached", func(ctx context.Context, p *rig.Run) {
			rig.Cached(rig.Alpha)(ctx, p)
			pulls = pullContinuously(ctx, p, rig.Alpha)
		}),
		rig.Prove("the extension rolls out with the new values, and the caches stay as they are", func(ctx context.Context, p *rig.Run) {
			before, pod := p.StateOfCaches(ctx, rig.Alpha), podOfExtension(ctx, p)
			changeDeployment(ctx, p, "debug")
			p.Afterwards(ctx, func(ctx context.Context) error { changeDeployment(ctx, p, "info"); return nil })
			p.Await(ctx, "the extension runs with the new values", operationTimeout, func(ctx context.Context) (bool, string, error) {
				now := podOfExtension(ctx, p)
				return now != "" && now != pod, "pod " + now, nil
			})
			annotate(ctx, p, v1beta1constants.GardenerOperationReconcile)
			awaitHealthy(ctx, p)
			if after := p.StateOfCaches(ctx, rig.Alpha); after != before {
				p.Fatalf("before:\n%s\nafter:\n%s", before, after)
			}
		}),
		rig.Prove("no pull failed or was slow", func(_ context.Context, p *rig.Run) { pulls.end(p, rig.Alpha, rig.MaxPull) }),
	)
}

// podOfExtension returns the UID of the extension's only pod, or "" while there is none or another.
func podOfExtension(ctx context.Context, p *rig.Run) string {
	p.Helper()
	pods := &corev1.PodList{}
	p.Check(p.Session.Seed.List(ctx, pods, client.InNamespace(p.ExtensionNamespace(ctx))))
	if len(pods.Items) != 1 {
		return ""
	}
	return string(pods.Items[0].UID)
}

// changeDeployment changes the extension's log level in its ControllerDeployment.
func changeDeployment(ctx context.Context, p *rig.Run, level string) {
	p.Helper()
	deployment := &gardencorev1.ControllerDeployment{ObjectMeta: metav1.ObjectMeta{Name: v1alpha3.ExtensionType}}
	p.Check(garden(p).Get(ctx, client.ObjectKeyFromObject(deployment), deployment))
	values := map[string]any{}
	p.Check(json.Unmarshal(deployment.Helm.Values.Raw, &values))
	values["logLevel"] = level
	raw, err := json.Marshal(values)
	p.Check(err)
	patch := client.MergeFrom(deployment.DeepCopy())
	deployment.Helm.Values.Raw = raw
	p.Check(garden(p).Patch(ctx, deployment, patch))
}
