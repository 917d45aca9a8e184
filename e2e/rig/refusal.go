//go:build e2e

package rig

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

// BadConfigs are plausible mistakes, with the field that the error must name.
var BadConfigs = []struct{ Name, Caches, Field string }{
	{"unknown field", `[{"upstream":"alpha.upstream.test","upstreem":"x"}]`, `caches[0].upstreem`},
	{"empty caches", `[]`, `caches: Required value`},
	{"duplicate upstream", `[{"upstream":"alpha.upstream.test"},{"upstream":"alpha.upstream.test"}]`, `caches[1].upstream`},
	{"upstream with scheme", `[{"upstream":"https://alpha.upstream.test"}]`, `caches[0].upstream`},
	{"bad ttl", `[{"upstream":"alpha.upstream.test","garbageCollection":{"ttl":"soon"}}]`, `caches[0].garbageCollection.ttl`},
}

// ProviderConfig returns the JSON of a RegistryConfig with these caches.
func ProviderConfig(caches string) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"registry.extensions.gardener.cloud/v1alpha3","kind":"RegistryConfig","caches":%s}`, caches)
}

// Refused makes gardenlet reconcile the session's shoot, which has one extension. It waits until
// the Extension is in Error and the message contains all of these words, because an earlier error
// can have another cause, such as a Secret that gardenlet has not yet copied to the seed. It then
// stops gardenlet, which would otherwise wait for a success, and returns the message.
func (p *Run) Refused(ctx context.Context, shoot *gardencorev1beta1.Shoot, words ...string) (message string) {
	p.Helper()
	config := shoot.Spec.Extensions[0].ProviderConfig.Raw
	flow := p.Background(ctx, func(ctx context.Context) error { return p.Session.Testbed.Gardenlet.Reconcile(ctx, shoot) })
	defer flow.End() // the flow fails as intended; the Extension shows the error
	p.Await(ctx, "the Extension is in Error for the bad config", time.Minute, func(ctx context.Context) (bool, string, error) {
		extension, err := GetExtension(ctx, p)
		if err != nil {
			return false, err.Error(), client.IgnoreNotFound(err)
		}
		status := extension.Status
		if extension.Spec.ProviderConfig == nil || !sameJSON(extension.Spec.ProviderConfig.Raw, config) {
			return false, "the Extension has another config", nil
		}
		if StateOf(extension) != gardencorev1beta1.LastOperationStateError || status.LastError == nil ||
			status.ObservedGeneration != extension.Generation {
			return false, fmt.Sprintf("state %q, generation %d, observed %d", StateOf(extension), extension.Generation, status.ObservedGeneration), nil
		}
		message = status.LastError.Description
		has := func(word string) bool { return strings.Contains(message, word) }
		missing := slices.DeleteFunc(slices.Clone(words), has)
		return len(missing) == 0, fmt.Sprintf("lastError %q lacks %q", message, missing), nil
	})
	return message
}

// NothingDeployed proves that the shoot has no caches.
func (p *Run) NothingDeployed(ctx context.Context) {
	p.Helper()
	if services := p.Services(ctx); len(services) != 0 {
		p.Fatalf("the shoot has Services of caches: %v", services)
	}
	if sets := p.statefulSets(ctx); len(sets) != 0 {
		p.Fatalf("the shoot has %d StatefulSets of caches", len(sets))
	}
}

func (p *Run) statefulSets(ctx context.Context) []appsv1.StatefulSet {
	p.Helper()
	sets := &appsv1.StatefulSetList{}
	p.Check(p.Session.Shoot.List(ctx, sets, client.InNamespace(metav1.NamespaceSystem), client.HasLabels{v1alpha3.LabelUpstreamHost}))
	return sets.Items
}

// StateOfCaches describes all StatefulSets of caches and, for each host, the Service, the endpoint
// in the status and hosts.toml on each worker. Equal results prove that nothing changed in between.
func (p *Run) StateOfCaches(ctx context.Context, hosts ...string) string {
	p.Helper()
	var state strings.Builder
	services, endpoints := p.Services(ctx), p.Endpoints(ctx)
	for _, set := range p.statefulSets(ctx) {
		fmt.Fprintf(&state, "StatefulSet %s %s generation %d\n", set.Name, set.UID, set.Generation)
	}
	for _, host := range hosts {
		fmt.Fprintf(&state, "%s: Service %s, endpoint %s\n", host, services[host].UID, endpoints[host])
		for _, worker := range p.Workers() {
			state.WriteString(p.Fingerprint(ctx, worker, HostsPath(host)))
		}
	}
	return state.String()
}

func sameJSON(a, b []byte) bool {
	var left, right any
	return json.Unmarshal(a, &left) == nil && json.Unmarshal(b, &right) == nil && reflect.DeepEqual(left, right)
}
