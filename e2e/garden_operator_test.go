//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	gardencorev1 "github.com/gardener/gardener/pkg/apis/core/v1"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	operatorv1alpha1 "github.com/gardener/gardener/pkg/apis/operator/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/cachetest"
	"github.com/gardener-extensions/registry-cache/e2e/rig"
	"github.com/gardener-extensions/registry-cache/kind/gardener"
	"github.com/gardener-extensions/registry-cache/kind/gardenlet"
)

// gardenOperator proves that gardener-operator's controllers install a published release from
// operator-extension.yaml: the same registration as garden.yaml, and the admission. Its steps are
// those of docs/operations.md. Afterwards the extension of this checkout is installed again.
func gardenOperator() rig.Scenario {
	const isTrue, isFalse = gardencorev1beta1.ConditionTrue, gardencorev1beta1.ConditionFalse
	type conditions = map[gardencorev1beta1.ConditionType]gardencorev1beta1.ConditionStatus
	var (
		controllers       *operator
		source, extension string // extension is operator-extension.yaml
		want              registered
	)
	return rig.New("garden-operator",
		rig.Prove("the extension of this checkout is uninstalled, and a release is published", func(ctx context.Context, p *rig.Run) {
			p.Reconcile(ctx)
			p.Afterwards(ctx, func(ctx context.Context) error {
				return cachetest.UseImage(ctx, p.Session.Testbed, cachetest.Image(p.Session.Testbed))
			})
			registry := p.Session.Testbed.Upstream(rig.Beta)
			controllers = startOperator(ctx, p, registry)
			uninstall(ctx, p)
			folder := fmt.Sprintf("/release-%d", time.Now().Unix()) // a published version never changes
			source = registry.Host() + folder
			var manifest string
			manifest, extension = publish(ctx, p, registry.PushAddress()+folder, source)
			want = asStored(ctx, p, manifest)
		}),

		rig.Prove("gardener-operator registers it as garden.yaml does, and runs the admission", func(ctx context.Context, p *rig.Run) {
			if code, text := kubectl(ctx, p, extension, "apply", "--server-side", "-f", "-"); code != 0 {
				p.Fatalf("apply: exit code %d: %s", code, text)
			}
			if code, text := kubectl(ctx, p, "", "wait", "extop", v1alpha3.ExtensionType, "--for=condition=Installed", "--timeout=3m"); code != 0 {
				p.Fatalf("wait: exit code %d: %s (controllers: %v)", code, text, controllers.running.Failed())
			}
			controllers.await(ctx, p, conditions{
				operatorv1alpha1.ExtensionInstalled: isTrue, operatorv1alpha1.ExtensionAdmissionHealthy: isTrue,
				operatorv1alpha1.ExtensionRequiredVirtual: isFalse, operatorv1alpha1.ExtensionRequiredRuntime: isFalse,
			})
			if got := storedObjects(ctx, p); !apiequality.Semantic.DeepEqual(got, want) {
				p.Fatalf("gardener-operator has written %+v, want that of garden.yaml: %+v", got, want)
			}
			p.Evidence("ControllerDeployment with %s", *want.Helm.OCIRepository.Ref)
			admission := client.MatchingLabels{"app.kubernetes.io/name": admissionName}
			fromRegistry(ctx, p, p.Session.Seed, gardener.GardenNamespace, admission, source+"/registry-cache-admission")
		}),

		rig.Prove("gardenlet installs it for a Shoot with caches", func(ctx context.Context, p *rig.Run) {
			rig.Cached(rig.Alpha)(ctx, p)
			awaitHealthy(ctx, p)
			namespace, err := p.Session.Testbed.ExtensionNamespace(ctx)
			p.Check(err)
			fromRegistry(ctx, p, p.Session.Seed, namespace, nil, source+"/registry-cache-extension")
			// While RequiredVirtual is true, gardener-operator's webhook refuses to delete the Extension.
			controllers.await(ctx, p, conditions{
				operatorv1alpha1.ExtensionRequiredVirtual: isTrue, operatorv1alpha1.ControllerInstallationsHealthy: isTrue,
			})
		}),

		rig.Prove("the admission refuses a mistake in the Shoot", func(ctx context.Context, p *rig.Run) {
			bad := rig.BadConfigs[0]
			patch := fmt.Sprintf(`{"spec":{"extensions":[{"type":%q,"providerConfig":%s}]}}`, v1alpha3.ExtensionType, rig.ProviderConfig(bad.Caches))
			p.Await(ctx, "gardener-apiserver asks the admission", time.Minute, func(ctx context.Context) (bool, string, error) {
				code, text := kubectl(ctx, p, "", "patch", "shoot", gardenlet.DefaultShoot, "--type=merge", "--dry-run=server", "--patch="+patch)
				return code != 0 && strings.Contains(text, admissionConfig+bad.Field), fmt.Sprintf("exit code %d: %s", code, text), nil
			})
			p.Evidence("refused: %s", bad.Field)
		}),

		rig.Prove("when no Shoot uses it, kubectl delete removes the registration and the admission", func(ctx context.Context, p *rig.Run) {
			p.Reconcile(ctx)
			controllers.await(ctx, p, conditions{operatorv1alpha1.ExtensionRequiredVirtual: isFalse})
			if code, text := kubectl(ctx, p, extension, "delete", "-f", "-", "--timeout=3m"); code != 0 {
				p.Fatalf("delete: exit code %d: %s", code, text)
			}
			deployment, registration := registeredObjects()
			pods := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: gardener.GardenNamespace, Name: admissionName}}
			for _, object := range []client.Object{deployment, registration, pods, admissionRegistration()} {
				p.Await(ctx, fmt.Sprintf("%T %s is gone", object, object.GetName()), time.Minute, func(ctx context.Context) (bool, string, error) {
					err := controllers.Get(ctx, client.ObjectKeyFromObject(object), object)
					return apierrors.IsNotFound(err), "it exists", client.IgnoreNotFound(err)
				})
			}
			p.Evidence("ControllerRegistration, ControllerDeployment, admission and its webhook are gone")
		}),
	)
}

// registered is what matters of a ControllerRegistration and its ControllerDeployment, no matter
// who has written them.
type registered struct {
	Registration           gardencorev1beta1.ControllerRegistrationSpec
	Helm                   *gardencorev1.HelmControllerDeployment
	InjectGardenKubeconfig *bool
	PodSecurity            string
}

func newRegistered(deployment *gardencorev1.ControllerDeployment, registration *gardencorev1beta1.ControllerRegistration) registered {
	return registered{
		Registration: registration.Spec, PodSecurity: registration.Annotations[v1beta1constants.AnnotationPodSecurityEnforce],
		Helm: deployment.Helm, InjectGardenKubeconfig: deployment.InjectGardenKubeconfig,
	}
}

func registeredObjects() (*gardencorev1.ControllerDeployment, *gardencorev1beta1.ControllerRegistration) {
	meta := metav1.ObjectMeta{Name: v1alpha3.ExtensionType}
	return &gardencorev1.ControllerDeployment{ObjectMeta: meta}, &gardencorev1beta1.ControllerRegistration{ObjectMeta: meta}
}

// storedObjects reads the registration from the garden.
func storedObjects(ctx context.Context, p *rig.Run) registered {
	p.Helper()
	deployment, registration := registeredObjects()
	for _, object := range []client.Object{deployment, registration} {
		p.Check(garden(p).Get(ctx, client.ObjectKeyFromObject(object), object))
	}
	return newRegistered(deployment, registration)
}

// asStored returns what the garden would store if garden.yaml were applied. No registration may
// exist.
func asStored(ctx context.Context, p *rig.Run, manifest string) registered {
	p.Helper()
	deployment, registration := registeredObjects()
	documents := strings.Split(manifest, "---\n")
	p.Check(errors.Join(yaml.UnmarshalStrict([]byte(documents[0]), deployment), yaml.UnmarshalStrict([]byte(documents[1]), registration)))
	p.Check(garden(p).Create(ctx, deployment)) // a registration may refer only to what exists
	defer func() { p.Check(removeAndWait(ctx, garden(p), deployment.DeepCopy())) }()
	p.Check(garden(p).Create(ctx, registration, client.DryRunAll))
	return newRegistered(deployment, registration)
}
