//go:build e2e

package e2e

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"strings"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"github.com/gardener/gardener/pkg/utils/managedresources"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/e2e-framework/pkg/features"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

// previous holds what the version before this one deployed into a shoot for alpha, as it was rendered then (commit
// baa4103fe3ba). Its image stands for any: the one of this version runs in its place, because no registry keeps old ones.
//
//go:embed testdata/upgrade
var previous embed.FS

const (
	previousFile  = "testdata/upgrade/alpha.yaml"
	previousImage = "registry.example/registry-cache:v1"
)

// upgrade proves that this version takes over a cache of the version before with its data: no volume is lost, and the first
// pull afterwards is a hit.
func upgrade() features.Feature {
	var (
		before string
		img    pushed
	)
	return scenario("upgrade",
		step{"the version before has left a cache for alpha, with data", func(ctx context.Context, p *proof) {
			p.Check(undoLeftovers(ctx))
			p.Reconcile(ctx)
			p.AwaitCaches(ctx)
			p.DeployPrevious(ctx)
			p.AwaitCaches(ctx, alpha)
			service := p.Services(ctx)[alpha]
			putPreviousExtension(ctx, p, "http://"+service.Spec.ClusterIP+":5000")
			img = p.Push(ctx, alpha)
			fetchThrough(ctx, p, service.Spec.ClusterIP, img)
			p.FetchedOnce(ctx, img, accesslog.AskerCache)
			before = claimsAndServices(p.Identities(ctx, suite.shoot))
		}},
		step{"this version takes it over", func(ctx context.Context, p *proof) {
			p.Reconcile(ctx, alpha)
			p.AwaitCaches(ctx, alpha)
			p.AwaitMirrors(ctx, alpha)
			// The StatefulSet may be another one: some of its fields cannot be changed.
			if after := claimsAndServices(p.Identities(ctx, suite.shoot)); after != before {
				p.Fatalf("the volume or the Service was created anew:\nbefore:\n%s\nafter:\n%s", before, after)
			}
			p.Evidence("same Service and volume")
		}},
		step{"the first pull is a hit", func(ctx context.Context, p *proof) {
			p.Pull(ctx, p.Worker(0), img)
			p.Evidence("first pull: %s", p.FetchedOnce(ctx, img, accesslog.AskerCache))
		}},
	)
}

// DeployPrevious writes the ManagedResource of the version before.
func (p *proof) DeployPrevious(ctx context.Context) {
	p.Helper()
	manifest, err := fs.ReadFile(previous, previousFile)
	p.Check(err)
	text := string(manifest)
	if !strings.Contains(text, previousImage) {
		p.Fatalf("%s does not name the image %s", previousFile, previousImage)
	}
	text = strings.ReplaceAll(text, previousImage, suite.testbed.CacheImage().Ref)
	name, secret := managedresources.NewSecret(suite.seed, shootNamespace, cachesManagedResource, map[string][]byte{"alpha.yaml": []byte(text)}, true)
	p.Check(secret.Reconcile(ctx))
	p.Check(managedresources.NewForShoot(suite.seed, shootNamespace, cachesManagedResource, "registry-cache", false).
		WithSecretRef(name).DeletePersistentVolumeClaims(true).Reconcile(ctx))
}

// putPreviousExtension writes the Extension as the version before has left it. The operation keeps this version's controller
// from reconciling it before gardenlet says so.
func putPreviousExtension(ctx context.Context, p *proof, endpoint string) {
	p.Helper()
	shoot, err := kind.ShootWithCaches(alpha)
	p.Check(err)
	extension := &extensionsv1alpha1.Extension{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: shootNamespace, Name: extensionName, Finalizers: []string{extensionFinalizer},
			Annotations: map[string]string{v1beta1constants.GardenerOperation: v1beta1constants.GardenerOperationWaitForState},
		},
		Spec: extensionsv1alpha1.ExtensionSpec{DefaultSpec: extensionsv1alpha1.DefaultSpec{
			Type: extensionName, ProviderConfig: shoot.Spec.Extensions[0].ProviderConfig,
		}},
	}
	p.Check(suite.seed.Create(ctx, extension))
	patch := client.MergeFrom(extension.DeepCopy())
	extension.Status.ObservedGeneration = extension.Generation
	extension.Status.LastOperation = &gardencorev1beta1.LastOperation{
		Type: gardencorev1beta1.LastOperationTypeCreate, State: gardencorev1beta1.LastOperationStateSucceeded, Progress: 100,
		Description: "Successfully reconciled Extension", LastUpdateTime: metav1.NewTime(time.Now().UTC()),
	}
	extension.Status.ProviderStatus = &runtime.RawExtension{Raw: fmt.Appendf(nil,
		`{"apiVersion":"registry.extensions.gardener.cloud/v1alpha3","kind":"RegistryStatus","caches":[`+
			`{"upstream":%q,"endpoint":%q,"remoteURL":%q}]}`, alpha, endpoint, "http://"+alpha)}
	p.Check(suite.seed.Status().Patch(ctx, extension, patch))
}

// fetchThrough asks a cache for an image as containerd does, from a node that is not told to use it: the manifest, then
// each blob.
func fetchThrough(ctx context.Context, p *proof, address string, img pushed) {
	p.Helper()
	const script = `
base=http://$1:5000/v2/$2; shift 2
curl -fsS --max-time 30 -o /dev/null -H 'Accept: application/vnd.oci.image.manifest.v1+json' \
  -H 'Accept: application/vnd.docker.distribution.manifest.v2+json' "$base/manifests/latest"
for digest; do curl -fsS --max-time 30 -o /dev/null "$base/blobs/$digest"; done`
	_, err := p.Worker(0).Script(ctx, script, append([]string{address, img.repository}, img.blobs...)...)
	p.Check(err)
}
