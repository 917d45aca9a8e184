package original

import (
	"context"
	"fmt"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	monitoringv1alpha1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1alpha1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/cachetest"
)

// Holder is the identity of the original in its Lease.
const Holder = "the-original"

// Monitoring returns the monitoring objects, which the original creates in the namespace without a
// ManagedResource. Only their names and labels matter here, so rules and dashboard are stubs.
func Monitoring(namespace string) []client.Object {
	meta := func(name string, labels map[string]string) metav1.ObjectMeta {
		labels["component"] = "registry-cache"
		return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}
	}
	return []client.Object{
		&corev1.ConfigMap{
			ObjectMeta: meta("registry-cache-dashboards", map[string]string{"dashboard.monitoring.gardener.cloud/shoot": "true"}),
			Data:       map[string]string{"registry-cache.dashboard.json": "{}"},
		},
		&monitoringv1.PrometheusRule{
			ObjectMeta: meta("shoot-registry-cache", map[string]string{"prometheus": "shoot"}),
			Spec: monitoringv1.PrometheusRuleSpec{Groups: []monitoringv1.RuleGroup{{Name: "registry-cache.rules", Rules: []monitoringv1.Rule{{
				Record: "shoot:registry_proxy_pulled_bytes_total:sum", Expr: intstr.FromString("sum(registry_proxy_pulled_bytes_total)"),
			}}}}},
		},
		&monitoringv1alpha1.ScrapeConfig{
			ObjectMeta: meta("shoot-registry-cache", map[string]string{"prometheus": "shoot"}),
			Spec:       monitoringv1alpha1.ScrapeConfigSpec{HonorLabels: ptr.To(false)},
		},
	}
}

// Start writes what the pods of the original write when they start: the Lease. It also deletes the
// MutatingWebhookConfiguration of this extension, which has the original's name and would refuse
// OperatingSystemConfigs while no pod of this extension runs.
func (e Extension) Start(ctx context.Context) error {
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: cachetest.ExtensionNamespace, Name: Lease},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: ptr.To(Holder)},
	}
	if err := e.replace(ctx, lease); err != nil {
		return err
	}
	webhook := &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "gardener-extension-" + v1alpha3.ExtensionType},
	}
	if err := e.Seed.Delete(ctx, webhook); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete the webhook of this extension: %w", err)
	}
	return nil
}

// Stop removes the webhook, which Run leaves in the seed, and waits until it has no effect. It
// keeps the objects of the caches, the monitoring objects and the Lease.
func (e Extension) Stop(ctx context.Context, namespace string) error {
	if err := RemoveWebhook(ctx, e.Seed); err != nil {
		return err
	}
	return e.awaitRegistries(ctx, namespace, nil)
}
