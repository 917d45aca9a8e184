package operatingsystemconfig

import (
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	extensionswebhook "github.com/gardener/gardener/extensions/pkg/webhook"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

// Name is the name and the path of the webhook.
const Name = "operatingsystemconfig"

// New returns the webhook that mutates OperatingSystemConfigs. It selects the namespaces of shoots
// that use the extension: gardenlet labels them extensions.gardener.cloud/registry-cache=true.
func New(mgr manager.Manager) (*extensionswebhook.Webhook, error) {
	return &extensionswebhook.Webhook{
		Action:            extensionswebhook.ActionMutating,
		Name:              Name,
		Path:              Name,
		Target:            extensionswebhook.TargetSeed,
		NamespaceSelector: extensionswebhook.BuildExtensionTypeNamespaceSelector(v1alpha3.ExtensionType, nil),
		Types:             []extensionswebhook.Type{{Obj: &extensionsv1alpha1.OperatingSystemConfig{}}},
		// Extensions are read from the API server. gardenlet writes the OperatingSystemConfig right after
		// the status of the Extension has changed, when a cache may still hold the previous endpoints.
		Webhook: &admission.Webhook{
			Handler:      &handler{nodes{clusters: mgr.GetClient(), extensions: mgr.GetAPIReader()}},
			RecoverPanic: ptr.To(true),
		},
	}, nil
}
