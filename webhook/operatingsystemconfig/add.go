package operatingsystemconfig

import (
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	extensionswebhook "github.com/gardener/gardener/extensions/pkg/webhook"
	"github.com/gardener/gardener/extensions/pkg/webhook/controlplane/genericmutator"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"github.com/gardener/gardener/pkg/component/extensions/operatingsystemconfig/original/components/kubelet"
	oscutils "github.com/gardener/gardener/pkg/component/extensions/operatingsystemconfig/utils"
)

const (
	// Name is the name of the webhook and the path it is served at.
	Name = "operatingsystemconfig"

	// extensionType is the type of the Extension whose status holds the endpoints; gardenlet gives it the same name.
	extensionType = "registry-cache"
)

// New returns the webhook that mutates the OperatingSystemConfigs in the namespaces of shoots that use the extension,
// which gardenlet labels extensions.gardener.cloud/registry-cache=true.
func New(mgr manager.Manager) (*extensionswebhook.Webhook, error) {
	codec := oscutils.NewFileContentInlineCodec()
	// The Extension is read from the API server: gardenlet writes the OperatingSystemConfig right after the status of the
	// Extension changed, when a cache may still have the endpoints of before.
	mutator := genericmutator.NewMutator(mgr, newEnsurer(mgr.GetAPIReader()), oscutils.NewUnitSerializer(),
		kubelet.NewConfigCodec(codec), codec, log.Log.WithName(Name))
	return extensionswebhook.New(mgr, extensionswebhook.Args{
		Name:              Name,
		Path:              Name,
		Target:            extensionswebhook.TargetSeed,
		NamespaceSelector: extensionswebhook.BuildExtensionTypeNamespaceSelector(extensionType, nil),
		Mutators: map[extensionswebhook.Mutator][]extensionswebhook.Type{
			mutator: {{Obj: &extensionsv1alpha1.OperatingSystemConfig{}}},
		},
	})
}
