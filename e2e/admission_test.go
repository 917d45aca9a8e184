//go:build e2e

package e2e

import (
	"context"
	"errors"
	"maps"
	"strings"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/cachetest"
	"github.com/gardener-extensions/registry-cache/e2e/rig"
	"github.com/gardener-extensions/registry-cache/kind/gardenlet"
)

const (
	// admissionConfig is the prefix of the field paths in the providerConfig.
	admissionConfig = "spec.extensions[0].providerConfig."
	secretField     = admissionConfig + "caches[0].secretReferenceName"
)

// admission proves which Shoots the admission refuses and accepts behind Gardener's API server, and
// that it can be removed completely. No gardenlet acts on the Shoots, because nothing schedules
// them. If the webhook does not answer, Shoots are accepted, so metrics must prove that it answered
// each request.
func admission() rig.Scenario {
	g := &guardedGarden{}
	return rig.New("admission",
		rig.Prove("the charts install the admission, and it registers its webhook", g.install),
		rig.Prove("kubectl apply is refused with the path of the mistake", g.refusesMistakes),
		rig.Prove("every example is accepted", g.acceptsExamples),
		rig.Prove("the size of a volume can change, its StorageClass cannot", g.comparesVolumes),
		rig.Prove("a bad Secret is refused, even if only spec.resources changes", g.readsSecrets),
		rig.Prove("a missing Secret blocks no unrelated change", g.letsUnrelatedPass),
		rig.Prove("a Shoot in deletion is not blocked", g.letsDelete),
		rig.Prove("the webhook has answered every request, and without a replica Shoots are accepted", g.failsOpen),
		rig.Prove("the charts grant every permission that it needed", g.needsNoMore),
		rig.Prove("deleting the namespace deletes the webhook configuration", g.uninstall),
	)
}

func (g *guardedGarden) refusesMistakes(ctx context.Context, p *rig.Run) {
	for _, bad := range rig.BadConfigs {
		code, text := kubectlApply(ctx, p, g.shoot(p, "bad", configuredAs(bad.Caches)))
		if code == 0 {
			p.Fatalf("%s: kubectl apply succeeded", bad.Name)
		}
		requireDenial(p, bad.Name, errors.New(text), admissionConfig+bad.Field)
	}
	p.Evidence("%d mistakes: refused, with their paths", len(rig.BadConfigs))
}

// acceptsExamples proves that a Shoot with the extension and the resources of each example is
// accepted. The rest of an example does not fit the testbed's cloud profile.
func (g *guardedGarden) acceptsExamples(ctx context.Context, p *rig.Run) {
	var examples []rendered
	for _, file := range files(p, "examples/shoots/*.yaml") {
		examples = appendDocuments(p, examples, file, content(p, file))
	}
	shoots, secrets := byGroup(examples, gardencorev1beta1.GroupName)
	for _, secret := range secrets {
		secret.object.SetNamespace(gardenlet.ProjectNamespace)
		secret.object.SetLabels(maps.Clone(objectLabels))
		p.Check(g.Create(ctx, secret.object))
	}
	for _, shoot := range shoots {
		example := &gardencorev1beta1.Shoot{}
		p.Check(runtime.DefaultUnstructuredConverter.FromUnstructured(shoot.object.Object, example))
		like := func(_ *rig.Run, shoot *gardencorev1beta1.Shoot) {
			shoot.Spec.Extensions, shoot.Spec.Resources = example.Spec.Extensions, example.Spec.Resources
		}
		if err := g.Create(ctx, g.shoot(p, "example", like), client.DryRunAll); err != nil {
			p.Errorf("%s: %v", shoot.from, err)
		}
	}
	if p.Failed() {
		p.FailNow()
	}
	p.Evidence("%d examples: accepted", len(shoots))
}

func (g *guardedGarden) comparesVolumes(ctx context.Context, p *rig.Run) {
	shoot := g.shoot(p, "volume", withVolume("20Gi"))
	p.Check(g.Create(ctx, shoot))
	moved := withCache(func(cache *v1alpha3.RegistryCache) {
		cache.Volume = &v1alpha3.Volume{StorageClassName: ptr.To("other")}
	})
	requireDenial(p, "another StorageClass", g.update(ctx, p, shoot, moved), admissionConfig+"caches[0].volume.storageClassName", "other")
	p.Check(g.update(ctx, p, shoot, withVolume("30Gi")))
	p.Check(g.update(ctx, p, shoot, withVolume("10Gi")))
	p.Evidence("volumes: any size, but no other StorageClass")
}

// readsSecrets does not refer to absent Secrets: before the admission is asked, Gardener itself
// refuses a new reference to one.
func (g *guardedGarden) readsSecrets(ctx context.Context, p *rig.Run) {
	g.makeSecret(ctx, p, "good", true)
	g.makeSecret(ctx, p, "better", true)
	g.makeSecret(ctx, p, "mutable", false)
	const problem = "must be immutable"
	requireDenial(p, "a new Shoot", g.Create(ctx, g.shoot(p, "secret", withCredentials, refersTo("mutable"))), secretField, problem)
	g.private = g.shoot(p, "secret", withCredentials, refersTo("good"))
	g.private.Finalizers = []string{holdFinalizer}
	p.Check(g.Create(ctx, g.private))
	requireDenial(p, "a new reference", g.update(ctx, p, g.private, refersTo("mutable")), secretField, problem)
	p.Check(g.update(ctx, p, g.private, refersTo("better")))
	p.Evidence("mutable Secrets: refused, also by spec.resources alone")
}

// letsUnrelatedPass deletes the Secret that the Shoot of readsSecrets refers to, which Gardener
// would prevent. Then it proves that the webhook refuses changes to the Shoot's caches and allows
// other changes.
func (g *guardedGarden) letsUnrelatedPass(ctx context.Context, p *rig.Run) {
	p.Check(g.removeProtected(ctx, g.secret("better")))
	related := withCache(func(cache *v1alpha3.RegistryCache) {
		cache.SecretReferenceName = ptr.To(credentialsReference)
		cache.HTTP = &v1alpha3.HTTP{TLS: true}
	})
	requireDenial(p, "a change of the caches", g.update(ctx, p, g.private, related), secretField, "does not exist")
	p.Check(g.update(ctx, p, g.private, func(_ *rig.Run, shoot *gardencorev1beta1.Shoot) {
		metav1.SetMetaDataLabel(&shoot.ObjectMeta, "unrelated", "true")
		shoot.Spec.Hibernation = &gardencorev1beta1.Hibernation{Enabled: ptr.To(true)}
	}))
	p.Evidence("with a missing Secret a Shoot can hibernate, and its caches cannot change")
}

// letsDelete proves that the Shoot of readsSecrets, whose Secret is missing, can be deleted and
// loses its finalizers.
func (g *guardedGarden) letsDelete(ctx context.Context, p *rig.Run) {
	bad := configuredAs(rig.BadConfigs[0].Caches)
	requireDenial(p, "before the deletion", g.update(ctx, p, g.private, bad), admissionConfig+rig.BadConfigs[0].Field)
	p.Check(g.update(ctx, p, g.private, func(_ *rig.Run, shoot *gardencorev1beta1.Shoot) {
		metav1.SetMetaDataAnnotation(&shoot.ObjectMeta, v1beta1constants.ConfirmationDeletion, "true")
	}))
	p.Check(g.Delete(ctx, g.private))
	p.Check(g.update(ctx, p, g.private, func(_ *rig.Run, shoot *gardencorev1beta1.Shoot) { shoot.Finalizers = nil }))
	if err := g.Get(ctx, client.ObjectKeyFromObject(g.private), g.private); !apierrors.IsNotFound(err) {
		p.Fatalf("the Shoot still exists without its finalizers: %v", err)
	}
	p.Evidence("in deletion: not blocked")
}

// credentialsReference is the name of the entry in spec.resources that the caches refer to.
const credentialsReference = "credentials"

// change is a function that changes a Shoot before the Shoot is sent.
type change func(p *rig.Run, shoot *gardencorev1beta1.Shoot)

// shoot returns a Shoot with the changes, as its owner writes it. No scheduler has this name, so
// that no gardenlet acts on the Shoot.
func (g *guardedGarden) shoot(p *rig.Run, name string, changes ...change) *gardencorev1beta1.Shoot {
	p.Helper()
	shoot := asWritten(gardenlet.NewShoot(name))
	shoot.Labels, shoot.Spec.SchedulerName = maps.Clone(objectLabels), ptr.To("none")
	for _, change := range changes {
		change(p, shoot)
	}
	return shoot
}

// update applies the changes to the stored Shoot, and returns the error of this request.
func (g *guardedGarden) update(ctx context.Context, p *rig.Run, shoot *gardencorev1beta1.Shoot, changes ...change) error {
	p.Helper()
	p.Check(g.Get(ctx, client.ObjectKeyFromObject(shoot), shoot))
	changed := shoot.DeepCopy()
	for _, change := range changes {
		change(p, changed)
	}
	// Unlike an update, a patch has no conflict with gardener-controller-manager's changes.
	return g.Patch(ctx, changed, client.MergeFrom(shoot))
}

// configuredAs returns a change that sets a Shoot's caches to this JSON.
func configuredAs(caches string) change {
	return func(_ *rig.Run, shoot *gardencorev1beta1.Shoot) {
		shoot.Spec.Extensions = []gardencorev1beta1.Extension{gardenlet.Extension(v1alpha3.ExtensionType, rig.ProviderConfig(caches))}
	}
}

// withCache returns a change that replaces a Shoot's caches with one cache, as the given function
// edits it.
func withCache(edit func(*v1alpha3.RegistryCache)) change {
	return func(p *rig.Run, shoot *gardencorev1beta1.Shoot) {
		cache := cachetest.Cache(rig.Alpha)
		edit(&cache)
		configured, err := cachetest.ShootWith(v1alpha3.RegistryConfig{Caches: []v1alpha3.RegistryCache{cache}})
		p.Check(err)
		shoot.Spec.Extensions = configured.Spec.Extensions
	}
}

func withVolume(size string) change {
	return withCache(func(cache *v1alpha3.RegistryCache) {
		cache.Volume = &v1alpha3.Volume{Size: ptr.To(resource.MustParse(size))}
	})
}

func withCredentials(p *rig.Run, shoot *gardencorev1beta1.Shoot) {
	withCache(func(cache *v1alpha3.RegistryCache) { cache.SecretReferenceName = ptr.To(credentialsReference) })(p, shoot)
}

// refersTo returns a change that adds an entry for the Secret to spec.resources.
func refersTo(secret string) change {
	return func(_ *rig.Run, shoot *gardencorev1beta1.Shoot) {
		*shoot = *gardenlet.WithSecret(shoot, credentialsReference, secret)
	}
}

func (g *guardedGarden) secret(name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: gardenlet.ProjectNamespace, Name: name, Labels: maps.Clone(objectLabels)}}
}

func (g *guardedGarden) makeSecret(ctx context.Context, p *rig.Run, name string, immutable bool) {
	p.Helper()
	secret := g.secret(name)
	secret.Immutable = ptr.To(immutable)
	secret.Data = map[string][]byte{v1alpha3.KeyUsername: []byte("user"), v1alpha3.KeyPassword: []byte("password")}
	p.Check(g.Create(ctx, secret))
}

// requireDenial proves that the webhook refused a request, with an error that contains all given
// words.
func requireDenial(p *rig.Run, what string, err error, words ...string) {
	p.Helper()
	for _, word := range append(words, "denied the request") {
		if err == nil || !strings.Contains(err.Error(), word) {
			p.Fatalf("%s: want a refusal by the webhook that contains %q, got: %v", what, word, err)
		}
	}
}
