//go:build e2e

package nodeless

import (
	"context"
	"strings"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/e2e/rig"
	"github.com/gardener-extensions/registry-cache/kind/gardenlet"
)

// badConfig proves that a bad configuration is refused as a whole, with a message that names the
// field.
func badConfig() rig.Scenario {
	var resources *rig.Recording
	steps := []rig.Step{rig.Prove("the extension is disabled", func(ctx context.Context, p *rig.Run) {
		p.Reconcile(ctx)
		resources = p.Record(ctx, p.Session.Seed, resourcesv1alpha1.SchemeGroupVersion.WithResource("managedresources"), p.Session.Namespace())
	})}
	for _, bad := range rig.BadConfigs {
		steps = append(steps, rig.Prove(bad.Name, func(ctx context.Context, p *rig.Run) {
			message := p.Refused(ctx, shootWith(p, rig.ProviderConfig(bad.Caches)))
			if !strings.Contains(message, bad.Field) {
				p.Fatalf("lastError does not name the field %s: %s", bad.Field, message)
			}
			p.NothingDeployed(ctx)
		}))
	}
	steps = append(steps, rig.Prove("a good config fixes the Extension", func(ctx context.Context, p *rig.Run) {
		proveNeverCreated(ctx, p, resources)
		p.Evidence("%d bad configs: Error with field path, nothing deployed", len(rig.BadConfigs))
		cached(rig.Alpha, rig.Beta)(ctx, p)
		p.Evidence("a good config fixes the Extension")
	}),

		rig.Prove("a bad config does not change running caches", proveKept))
	return rig.New("bad-config", steps...)
}

// proveKept proves that a bad configuration does not affect running caches.
func proveKept(ctx context.Context, p *rig.Run) {
	before := everything(ctx, p)
	message := p.Refused(ctx, shootWith(p, rig.ProviderConfig(rig.BadConfigs[0].Caches)))
	if !strings.Contains(message, rig.BadConfigs[0].Field) {
		p.Fatalf("lastError does not name the field %s: %s", rig.BadConfigs[0].Field, message)
	}
	proveSame(ctx, p, before)
	p.Evidence("with running caches: nothing changed")
}

// shootWith returns a Shoot object with the name of the session's shoot and this providerConfig.
func shootWith(p *rig.Run, config []byte) *gardencorev1beta1.Shoot {
	return gardenlet.NewShoot(p.Session.Testbed.Gardenlet.Name, gardenlet.Extension(v1alpha3.ExtensionType, config))
}

// proveNeverCreated proves that the extension has created no ManagedResource since the recording
// began.
func proveNeverCreated(ctx context.Context, p *rig.Run, resources *rig.Recording) {
	p.Helper()
	events := rig.RaiseFence(ctx, p, resources, p.Session.Seed, rig.ResourceFence(p.Session.Namespace()))
	for _, name := range []string{v1alpha3.ManagedResourceCaches, v1alpha3.ManagedResourceServices, v1alpha3.ManagedResourceCleaner} {
		if event, found := rig.FirstEvent(events, rig.Named(name)); found {
			p.Fatalf("ManagedResource %s was created: %s", name, event.Type)
		}
	}
}
