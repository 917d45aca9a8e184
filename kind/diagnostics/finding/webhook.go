package finding

import (
	"fmt"
	"slices"
	"strings"

	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/kind/diagnostics/bundle"
)

// webhookName is that of the extension's registration of its webhooks in the seed.
const webhookName = "gardener-extension-" + v1alpha3.ExtensionType

// webhook reports configurations of nodes to which the extension's webhook has not added what it adds while there are caches: the
// nodes lose their hosts.toml files then.
func webhook(b *bundle.Bundle) []Finding {
	if len(b.Cached()) == 0 || b.Sleeps() {
		return nil
	}
	var all []Finding
	for i := range b.Seed.OperatingSystemConfigs {
		config := &b.Seed.OperatingSystemConfigs[i]
		if config.Spec.Purpose != extensionsv1alpha1.OperatingSystemConfigPurposeReconcile ||
			slices.ContainsFunc(config.Spec.Units, func(unit extensionsv1alpha1.Unit) bool { return unit.Name == bundle.ScriptUnit }) {
			continue
		}
		found := Finding{
			Certain: true, File: b.Seed.ObjectsFile("operatingsystemconfigs"),
			Problem: fmt.Sprintf("OperatingSystemConfig %s/%s has no unit %s, although the Extension has caches: the extension's webhook did not see "+
				"when it was written.", config.Namespace, config.Name, bundle.ScriptUnit),
			Fix: "see why the webhook was not asked (its registration in the seed, the label of the namespace, the pod of the extension); then reconcile the Shoot " +
				"(testbed shoot reconcile)",
		}
		if !slices.ContainsFunc(b.Seed.MutatingWebhooks, isExtensions) {
			found.Details = []string{"the seed has no MutatingWebhookConfiguration " + webhookName + "; the extension makes it when it starts"}
		}
		all = append(all, found)
	}
	return all
}

func isExtensions(w admissionregistrationv1.MutatingWebhookConfiguration) bool {
	return strings.HasPrefix(w.Name, webhookName)
}
