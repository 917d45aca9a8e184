package operate_test

import (
	"strings"
	"testing"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/gardener-extensions/registry-cache/kind/gardenlet"
	"github.com/gardener-extensions/registry-cache/kind/operate"
)

func read(t *testing.T, content string) *operate.Manifest {
	t.Helper()
	found, err := operate.ReadManifest("test", strings.NewReader("apiVersion: core.gardener.cloud/v1beta1\nkind: Shoot\n"+content))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestOverlayTakesOver(t *testing.T) {
	manifest, base := read(t, `metadata: {name: one, labels: {team: a}, annotations: {mine: 'yes', gardener.cloud/operation: migrate}}
spec:
  purpose: testing
  extensions: [{type: registry-cache, providerConfig: {caches: [{upstream: docker.io}]}}]
  resources: [{name: a, resourceRef: {apiVersion: v1, kind: Secret, name: b}}]
  hibernation: {enabled: true}
  provider: {type: aws, workers: []}
`), gardenlet.Shoot()
	wanted := manifest.Shoot
	wantedBefore, baseBefore := wanted.DeepCopy(), base.DeepCopy()
	got := manifest.Overlay(base)
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

	none := read(t, "metadata: {name: one}\n").Overlay(gardenlet.Shoot(gardenlet.Extension("x", nil)))
	if len(none.Spec.Extensions) > 0 || *none.Spec.Purpose != gardencorev1beta1.ShootPurposeEvaluation {
		t.Errorf("a manifest without extensions gives %+v", none.Spec)
	}
}
