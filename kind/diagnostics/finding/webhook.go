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

// webhookName is the prefix of the name of the extension's MutatingWebhookConfiguration in the
// seed.
const webhookName = "gardener-extension-" + v1alpha3.ExtensionType

// webhook reports OperatingSystemConfigs that the extension's webhook has not mutated although
// there are caches. The nodes then lose their hosts.toml files.
func webhook(b *bundle.Bundle) []Finding {
	if len(b.Cached()) == 0 || b.Hibernated() {
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
			Problem: fmt.Sprintf("OperatingSystemConfig %s/%s has no unit %s, although there are caches: the API server did not call the extension's webhook.",
				config.Namespace, config.Name, bundle.ScriptUnit),
			Fix: "check the MutatingWebhookConfiguration in the seed, the label of the namespace, and the pod of the extension; then reconcile the Shoot " +
				"(testbed shoot reconcile)",
		}
		if !slices.ContainsFunc(b.Seed.MutatingWebhooks, func(w admissionregistrationv1.MutatingWebhookConfiguration) bool {
			return strings.HasPrefix(w.Name, webhookName)
		}) {
			found.Details = []string{"the seed has no MutatingWebhookConfiguration " + webhookName + "; the extension creates it when it starts"}
		}
		all = append(all, found)
	}
	return all
}
