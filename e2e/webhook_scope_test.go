//go:build e2e

package e2e

import (
	"context"
	"errors"
	"slices"
	"time"

	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/gardener-extensions/registry-cache/e2e/rig"
	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

const (
	unlabelledNamespace = "e2e-webhook-scope"
	// holdFinalizer blocks the deletion of an object.
	holdFinalizer = "e2e.registry-cache.test/hold"
)

// webhookScope proves that the webhook changes only the OperatingSystemConfigs that it must change.
func webhookScope() rig.Scenario {
	reconcilePurpose := extensionsv1alpha1.OperatingSystemConfigPurposeReconcile
	return rig.New("webhook-scope",
		rig.Prove("alpha and beta are cached", rig.Cached(rig.Alpha, rig.Beta)),
		rig.Prove("an OSC of purpose reconcile in the shoot's namespace is changed", func(ctx context.Context, p *rig.Run) {
			created, _ := createConfig(ctx, p, rig.ShootNamespace, reconcilePurpose)
			if !hasOurs(created) {
				p.Fatalf("the OSC was not changed, so the other steps prove nothing")
			}
			p.Evidence("in scope: changed")
		}),

		rig.Prove("an OSC of purpose provision is not changed", func(ctx context.Context, p *rig.Run) {
			created, sent := createConfig(ctx, p, rig.ShootNamespace, extensionsv1alpha1.OperatingSystemConfigPurposeProvision)
			proveUnchanged(p, created, sent)
			p.Evidence("purpose provision: unchanged")
		}),

		rig.Prove("an OSC in an unlabelled namespace is not changed", func(ctx context.Context, p *rig.Run) {
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: unlabelledNamespace}}
			p.Afterwards(ctx, func(ctx context.Context) error {
				return client.IgnoreNotFound(p.Session.Seed.Delete(ctx, namespace.DeepCopy()))
			})
			makeNamespace(ctx, p, namespace)
			created, sent := createConfig(ctx, p, unlabelledNamespace, reconcilePurpose)
			proveUnchanged(p, created, sent)
			p.Evidence("unlabelled namespace: unchanged")
		}),

		rig.Prove("an OSC in deletion is not changed", func(ctx context.Context, p *rig.Run) {
			config, sent := createConfig(ctx, p, rig.ShootNamespace, reconcilePurpose)
			if !hasOurs(config) {
				p.Fatalf("the OSC was not changed before its deletion, so this step proves nothing")
			}
			p.Check(p.Session.Seed.Delete(ctx, config))
			p.Check(p.Session.Seed.Get(ctx, client.ObjectKeyFromObject(config), config))
			if config.DeletionTimestamp == nil {
				p.Fatalf("the OSC is not in deletion")
			}
			config.Spec = *sent.DeepCopy()
			p.Check(p.Session.Seed.Update(ctx, config))
			proveUnchanged(p, config, sent)
			p.Evidence("in deletion: unchanged")
		}),
	)
}

// createConfig creates an OperatingSystemConfig that no controller reconciles, and deletes it when
// the scenario ends. The results are the stored object and the spec that was sent.
func createConfig(
	ctx context.Context, p *rig.Run, namespace string, purpose extensionsv1alpha1.OperatingSystemConfigPurpose,
) (*extensionsv1alpha1.OperatingSystemConfig, *extensionsv1alpha1.OperatingSystemConfigSpec) {
	p.Helper()
	config := &extensionsv1alpha1.OperatingSystemConfig{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: "e2e-", Namespace: namespace, Finalizers: []string{holdFinalizer},
			Labels: map[string]string{v1beta1constants.LabelWorkerPool: "local"},
		},
		Spec: extensionsv1alpha1.OperatingSystemConfigSpec{
			DefaultSpec: extensionsv1alpha1.DefaultSpec{Type: "e2e-nobody"},
			Purpose:     purpose,
			Units:       []extensionsv1alpha1.Unit{{Name: "e2e.service", Content: ptr.To("[Unit]\nDescription=e2e\n")}},
			Files: []extensionsv1alpha1.File{{
				Path:    "/etc/e2e",
				Content: extensionsv1alpha1.FileContent{Inline: &extensionsv1alpha1.FileContentInline{Data: "e2e"}},
			}},
		},
	}
	sent := config.Spec.DeepCopy()
	p.Check(p.Session.Seed.Create(ctx, config))
	p.Afterwards(ctx, func(ctx context.Context) error { return removeConfig(ctx, p, client.ObjectKeyFromObject(config)) })
	return config, sent
}

func removeConfig(ctx context.Context, p *rig.Run, key client.ObjectKey) error {
	config := &extensionsv1alpha1.OperatingSystemConfig{}
	if err := p.Session.Seed.Get(ctx, key, config); err != nil {
		return client.IgnoreNotFound(err)
	}
	patch := client.MergeFrom(config.DeepCopy())
	controllerutil.RemoveFinalizer(config, holdFinalizer)
	return errors.Join(
		client.IgnoreNotFound(p.Session.Seed.Patch(ctx, config, patch)),
		client.IgnoreNotFound(p.Session.Seed.Delete(ctx, config)),
	)
}

// makeNamespace creates the namespace. If a killed run has left the namespace, makeNamespace first
// deletes it.
func makeNamespace(ctx context.Context, p *rig.Run, namespace *corev1.Namespace) {
	p.Helper()
	p.Await(ctx, "namespace "+namespace.Name+" is created", time.Minute, func(ctx context.Context) (bool, string, error) {
		left := &corev1.Namespace{}
		if err := p.Session.Seed.Get(ctx, client.ObjectKeyFromObject(namespace), left); err == nil {
			return false, "the namespace of an earlier run still exists", client.IgnoreNotFound(p.Session.Seed.Delete(ctx, left))
		}
		err := p.Session.Seed.Create(ctx, namespace)
		return err == nil, "", err
	})
}

func proveUnchanged(p *rig.Run, config *extensionsv1alpha1.OperatingSystemConfig, sent *extensionsv1alpha1.OperatingSystemConfigSpec) {
	p.Helper()
	if !equality.Semantic.DeepEqual(config.Spec, *sent) {
		p.Fatalf("the OSC was changed: it has files %v and units %v", config.Spec.Files, config.Spec.Units)
	}
}

func hasOurs(config *extensionsv1alpha1.OperatingSystemConfig) bool {
	return slices.ContainsFunc(config.Spec.Units, func(unit extensionsv1alpha1.Unit) bool { return unit.Name == nodeconfig.UnitName }) &&
		slices.ContainsFunc(config.Spec.Files, func(file extensionsv1alpha1.File) bool { return file.Path == nodeconfig.ScriptPath })
}
