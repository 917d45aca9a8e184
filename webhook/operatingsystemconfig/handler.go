package operatingsystemconfig

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	extensionswebhook "github.com/gardener/gardener/extensions/pkg/webhook"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"gomodules.xyz/jsonpatch/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

// operatingSystemConfig has the fields that the webhook needs. The rest, tens of KiB of files, is
// not decoded and thus neither changed nor lost. Gardener's handler decodes and encodes everything
// twice to compute the patch, which would be most of the cost of an admission.
type operatingSystemConfig struct {
	Metadata struct {
		DeletionTimestamp *metav1.Time `json:"deletionTimestamp"`
	} `json:"metadata"`
	Spec struct {
		Purpose extensionsv1alpha1.OperatingSystemConfigPurpose `json:"purpose"`
		Units   []struct {
			Name string `json:"name"`
		} `json:"units"`
		Files []struct {
			Path string `json:"path"`
		} `json:"files"`
	} `json:"spec"`
}

func (o *operatingSystemConfig) unitNames() []string {
	names := make([]string, 0, len(o.Spec.Units))
	for _, unit := range o.Spec.Units {
		names = append(names, unit.Name)
	}
	return names
}

func (o *operatingSystemConfig) filePaths() []string {
	paths := make([]string, 0, len(o.Spec.Files))
	for _, file := range o.Spec.Files {
		paths = append(paths, file.Path)
	}
	return paths
}

// handler reviews OperatingSystemConfigs. It denies those that it cannot complete, and gardenlet
// retries.
type handler struct {
	nodes nodes
}

var _ admission.Handler = &handler{}

// Handle returns a patch that adds the script and the unit to an OperatingSystemConfig of purpose
// reconcile.
func (h *handler) Handle(ctx context.Context, request admission.Request) admission.Response {
	osc := &operatingSystemConfig{}
	if err := json.Unmarshal(request.Object.Raw, osc); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("decoding the OperatingSystemConfig: %w", err))
	}
	if osc.Metadata.DeletionTimestamp != nil || osc.Spec.Purpose != extensionsv1alpha1.OperatingSystemConfigPurposeReconcile {
		return admission.Allowed("")
	}
	unit, err := h.nodes.unit(ctx, request.Namespace)
	if err != nil {
		log.FromContext(ctx).Info("Denied an OperatingSystemConfig", "namespace", request.Namespace, "name", request.Name, "reason", err.Error())
		return admission.Denied(err.Error())
	}
	if unit == nil {
		return admission.Allowed("")
	}
	return admission.Patched("",
		ensure("/spec/files", osc.filePaths(), script.Path, script),
		ensure("/spec/units", osc.unitNames(), unit.Name, unit))
}

// ensure returns the operation that replaces the element with the name in the list at path, or
// appends value.
func ensure(path string, names []string, name string, value any) jsonpatch.Operation {
	if len(names) == 0 { // the list may be missing
		return jsonpatch.NewOperation("add", path, []any{value})
	}
	if i := slices.Index(names, name); i >= 0 {
		return jsonpatch.NewOperation("replace", path+"/"+strconv.Itoa(i), value)
	}
	return jsonpatch.NewOperation("add", path+"/-", value)
}

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
