package manifest_test

import (
	"slices"
	"strings"
	"testing"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/gardener-extensions/registry-cache/kind/gardenlet"
	"github.com/gardener-extensions/registry-cache/kind/manifest"
)

func read(t *testing.T, content string) *gardencorev1beta1.Shoot {
	t.Helper()
	found, err := manifest.Read("test", strings.NewReader("apiVersion: core.gardener.cloud/v1beta1\nkind: Shoot\n"+content))
	if err != nil {
		t.Fatal(err)
	}
	return found.Shoot
}

func TestOverlayNamesWhatItReplaces(t *testing.T) {
	const name = "metadata: {name: local, namespace: garden-local}\n"
	for _, tc := range []struct {
		name, manifest string
		want           []string
	}{
		{"nothing", name, nil},
		{"what concerns the extension", name + `spec:
  purpose: testing
  extensions: [{type: registry-cache, providerConfig: {caches: []}}, {type: other}]
  resources: [{name: a, resourceRef: {apiVersion: v1, kind: Secret, name: b}}]
  hibernation: {enabled: true}
  maintenance: {timeWindow: {begin: 220000+0100, end: 230000+0100}}
  systemComponents: {nodeLocalDNS: {enabled: true}}
`, nil},
		{"names", "metadata: {name: one, namespace: garden-dev}\n", []string{
			"metadata.name (one, here local)", "metadata.namespace (garden-dev, here garden-local)"}},
		{"the cloud", name + `spec:
  region: eu
  cloudProfile: {name: aws}
  credentialsBindingName: mine
  networking: {type: calico, nodes: 10.0.0.0/16}
  kubernetes: {version: 1.33.1}
  provider: {type: aws, workers: [{name: w, machine: {type: m}, minimum: 1, maximum: 1}]}
`, []string{
			"spec.cloudProfile.name (aws, here kind)", "spec.credentialsBindingName (mine, none here)",
			"spec.kubernetes.version (1.33.1, none here)", "spec.networking.nodes (10.0.0.0/16, none here)",
			"spec.networking.type (calico, here kind)", "spec.provider.type (aws, here kind)", "spec.provider.workers", "spec.region (eu, here local)"}},
		{"the same cloud", name + "spec: {region: local, cloudProfile: {name: kind}}\n", nil},
		{"what the server writes", "metadata: {name: local, namespace: garden-local, uid: u, generation: 7, resourceVersion: '1'}\n" +
			"status: {hibernated: true, technicalID: x}\n", []string{
			"metadata.generation (7, here 1)", "metadata.resourceVersion (1, none here)",
			"metadata.uid (u, here " + string(gardenlet.Shoot().UID) + ")", "status.hibernated (true, here false)", "status.technicalID (x, none here)"}},
		{"an operation", "metadata: {name: local, namespace: garden-local, annotations: {gardener.cloud/operation: migrate, mine: 'yes'}}\n",
			[]string{"metadata.annotations.gardener.cloud/operation (migrate, none here)"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, replaced, err := manifest.Overlay(read(t, tc.manifest), gardenlet.Shoot())
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, replacement := range replaced {
				got = append(got, replacement.String())
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("replaced\n%q, want\n%q", got, tc.want)
			}
		})
	}
}

func TestOverlayTakesOver(t *testing.T) {
	wanted, base := read(t, `metadata: {name: one, labels: {team: a}, annotations: {mine: 'yes', gardener.cloud/operation: migrate}}
spec:
  purpose: testing
  extensions: [{type: registry-cache, providerConfig: {caches: [{upstream: docker.io}]}}]
  resources: [{name: a, resourceRef: {apiVersion: v1, kind: Secret, name: b}}]
  hibernation: {enabled: true}
  provider: {type: aws, workers: []}
`), gardenlet.Shoot()
	wantedBefore, baseBefore := wanted.DeepCopy(), base.DeepCopy()
	got, _, err := manifest.Overlay(wanted, base)
	if err != nil {
		t.Fatal(err)
	}
	if !equality.Semantic.DeepEqual(wanted, wantedBefore) || !equality.Semantic.DeepEqual(base, baseBefore) {
		t.Error("an argument was changed")
	}
	want := gardenlet.Shoot(wanted.Spec.Extensions...)
	want.Labels = map[string]string{"team": "a"}
	want.Annotations["mine"] = "yes"
	want.Spec.Purpose, want.Spec.Resources, want.Spec.Hibernation = wanted.Spec.Purpose, wanted.Spec.Resources, wanted.Spec.Hibernation
	if !equality.Semantic.DeepEqual(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
	got.Spec.Extensions[0].ProviderConfig.Raw[0] = 'x'
	if wanted.Spec.Extensions[0].ProviderConfig.Raw[0] == 'x' {
		t.Error("the result shares memory with the manifest")
	}

	none, _, err := manifest.Overlay(read(t, "metadata: {name: one}\n"), gardenlet.Shoot(gardenlet.Extension("x", nil)))
	if err != nil || len(none.Spec.Extensions) > 0 || *none.Spec.Purpose != gardencorev1beta1.ShootPurposeEvaluation {
		t.Errorf("a manifest without extensions gives %+v, error %v", none.Spec, err)
	}
}
