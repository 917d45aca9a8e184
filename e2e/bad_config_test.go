//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/e2e/rig"
	"github.com/gardener-extensions/registry-cache/e2e/timeline"
	"github.com/gardener-extensions/registry-cache/kind/gardenlet"
	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

// badConfigs are plausible mistakes, with the field that the error must name.
var badConfigs = []struct{ name, caches, field string }{
	{"unknown field", `[{"upstream":"alpha.upstream.test","upstreem":"x"}]`, `caches[0].upstreem`},
	{"empty caches", `[]`, `caches: Required value`},
	{"duplicate upstream", `[{"upstream":"alpha.upstream.test"},{"upstream":"alpha.upstream.test"}]`, `caches[1].upstream`},
	{"upstream with scheme", `[{"upstream":"https://alpha.upstream.test"}]`, `caches[0].upstream`},
	{"bad ttl", `[{"upstream":"alpha.upstream.test","garbageCollection":{"ttl":"soon"}}]`, `caches[0].garbageCollection.ttl`},
}

// badConfig proves that a bad configuration is refused as a whole, with a message that names the
// field.
func badConfig() rig.Scenario {
	var resources *timeline.Recording
	steps := []rig.Step{rig.Prove("the extension is disabled", func(ctx context.Context, p *rig.Run) {
		p.Reconcile(ctx)
		resources = p.Record(ctx, p.Session.Seed, resourcesv1alpha1.SchemeGroupVersion.WithResource("managedresources"), rig.ShootNamespace)
	})}
	for _, bad := range badConfigs {
		steps = append(steps, rig.Prove(bad.name, func(ctx context.Context, p *rig.Run) {
			message := requireRefusal(ctx, p, providerConfig(bad.caches))
			if !strings.Contains(message, bad.field) {
				p.Fatalf("lastError does not name the field %s: %s", bad.field, message)
			}
			proveNothingDeployed(ctx, p)
		}))
	}
	steps = append(steps, rig.Prove("a good config fixes the Extension", func(ctx context.Context, p *rig.Run) {
		proveNeverCreated(ctx, p, resources)
		p.Evidence("%d bad configs: Error with field path, nothing deployed", len(badConfigs))
		rig.Cached(rig.Alpha, rig.Beta)(ctx, p)
		p.Evidence("a good config fixes the Extension")
	}),

		rig.Prove("a bad config does not change running caches", proveKept))
	return rig.New("bad-config", steps...)
}

// proveKept proves that a bad configuration does not affect running caches.
func proveKept(ctx context.Context, p *rig.Run) {
	img := p.Push(ctx, rig.Alpha)
	p.Pull(ctx, p.Worker(0), img)
	before := stateOfCaches(ctx, p, rig.Alpha, rig.Beta)
	message := requireRefusal(ctx, p, providerConfig(badConfigs[0].caches))
	if !strings.Contains(message, badConfigs[0].field) {
		p.Fatalf("lastError does not name the field %s: %s", badConfigs[0].field, message)
	}
	if after := stateOfCaches(ctx, p, rig.Alpha, rig.Beta); after != before {
		p.Fatalf("the bad config changed caches:\nbefore:\n%s\nafter:\n%s", before, after)
	}
	p.Pull(ctx, p.Worker(1), img)
	p.FetchedOnce(ctx, img, accesslog.AskerCache)
	p.Evidence("with running caches: nothing changed, still a hit")
}

// stateOfCaches describes the caches in the shoot, in the Extension's status and on the workers. If
// two results are equal, nothing has changed the caches in between.
func stateOfCaches(ctx context.Context, p *rig.Run, hosts ...string) string {
	p.Helper()
	var state strings.Builder
	services, endpoints := p.Services(ctx), p.Endpoints(ctx)
	sets := &appsv1.StatefulSetList{}
	p.Check(p.Session.Shoot.List(ctx, sets, client.InNamespace(metav1.NamespaceSystem), client.HasLabels{v1alpha3.LabelUpstreamHost}))
	for _, set := range sets.Items {
		fmt.Fprintf(&state, "StatefulSet %s %s generation %d\n", set.Name, set.UID, set.Generation)
	}
	for _, host := range hosts {
		fmt.Fprintf(&state, "%s: Service %s, endpoint %s\n", host, services[host].UID, endpoints[host])
		for _, worker := range p.Workers() {
			state.WriteString(p.Fingerprint(ctx, worker, rig.HostsPath(host)))
		}
	}
	return state.String()
}

// providerConfig returns the JSON of a RegistryConfig with these caches.
func providerConfig(caches string) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"registry.extensions.gardener.cloud/v1alpha3","kind":"RegistryConfig","caches":%s}`, caches)
}

// requireRefusal makes gardenlet reconcile the shoot with the configuration, waits until the
// Extension is in Error, and returns the error message.
func requireRefusal(ctx context.Context, p *rig.Run, config []byte) (message string) {
	p.Helper()
	return requireShootRefusal(ctx, p, gardenlet.Shoot(gardenlet.Extension(v1alpha3.ExtensionType, config)))
}

// requireShootRefusal is like requireRefusal, for a shoot with one extension. It waits for an error
// with all words, because an earlier error can have another cause, such as a Secret that gardenlet
// has not yet copied to the seed. Then it stops gardenlet, which would keep waiting for a success.
func requireShootRefusal(ctx context.Context, p *rig.Run, shoot *gardencorev1beta1.Shoot, words ...string) (message string) {
	p.Helper()
	config := shoot.Spec.Extensions[0].ProviderConfig.Raw
	flow := p.Background(ctx, func(ctx context.Context) error { return p.Session.Testbed.Gardenlet.Reconcile(ctx, shoot) })
	defer flow.End() // the flow fails as intended; the Extension has the error
	p.Await(ctx, "the Extension is in Error for the bad config", 30*time.Second, func(ctx context.Context) (bool, string, error) {
		extension, err := rig.GetExtension(ctx, p)
		if err != nil {
			return false, err.Error(), ignoreNotFound(err)
		}
		status := extension.Status
		if extension.Spec.ProviderConfig == nil || !sameJSON(extension.Spec.ProviderConfig.Raw, config) {
			return false, "the Extension has another config", nil
		}
		if rig.StateOf(extension) != gardencorev1beta1.LastOperationStateError || status.LastError == nil ||
			status.ObservedGeneration != extension.Generation {
			return false, fmt.Sprintf("state %q, generation %d, observed %d", rig.StateOf(extension), extension.Generation, status.ObservedGeneration), nil
		}
		message = status.LastError.Description
		has := func(word string) bool { return strings.Contains(message, word) }
		missing := slices.DeleteFunc(slices.Clone(words), has)
		return len(missing) == 0, fmt.Sprintf("lastError %q lacks %q", message, missing), nil
	})
	return message
}

// proveNothingDeployed proves that the shoot has no caches.
func proveNothingDeployed(ctx context.Context, p *rig.Run) {
	p.Helper()
	if services := p.Services(ctx); len(services) != 0 {
		p.Fatalf("the shoot has Services of caches: %v", services)
	}
	sets := &appsv1.StatefulSetList{}
	p.Check(p.Session.Shoot.List(ctx, sets, client.InNamespace(metav1.NamespaceSystem), client.HasLabels{v1alpha3.LabelUpstreamHost}))
	if len(sets.Items) != 0 {
		p.Fatalf("the shoot has %d StatefulSets of caches", len(sets.Items))
	}
}

// proveNeverCreated proves that the ManagedResources of caches and cleaner have not existed since
// the recording began.
func proveNeverCreated(ctx context.Context, p *rig.Run, resources *timeline.Recording) {
	p.Helper()
	events := rig.RaiseFence(ctx, p, resources, p.Session.Seed, rig.ResourceFence(rig.ShootNamespace))
	for _, name := range []string{v1alpha3.ManagedResourceCaches, v1alpha3.ManagedResourceCleaner} {
		if event, found := timeline.First(events, timeline.Named(name)); found {
			p.Fatalf("ManagedResource %s was created: %s", name, event.Type)
		}
	}
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func sameJSON(a, b []byte) bool {
	var left, right any
	if json.Unmarshal(a, &left) != nil || json.Unmarshal(b, &right) != nil {
		return false
	}
	leftText, leftErr := json.Marshal(left)
	rightText, rightErr := json.Marshal(right)
	return leftErr == nil && rightErr == nil && bytes.Equal(leftText, rightText)
}
