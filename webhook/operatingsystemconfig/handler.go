package operatingsystemconfig

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	extensionswebhook "github.com/gardener/gardener/extensions/pkg/webhook"
	v1beta1helper "github.com/gardener/gardener/pkg/api/core/v1beta1/helper"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"github.com/gardener/gardener/pkg/extensions"
	"gomodules.xyz/jsonpatch/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

// operatingSystemConfig contains only the fields that the webhook needs. The rest, tens of KiB of
// files, is not decoded and thus neither changed nor lost. Gardener's handler decodes and encodes
// everything twice to compute the patch, which would be most of the cost of an admission.
type operatingSystemConfig struct {
	Metadata struct {
		DeletionTimestamp *metav1.Time `json:"deletionTimestamp"`
	} `json:"metadata"`
	Spec struct {
		Purpose extensionsv1alpha1.OperatingSystemConfigPurpose `json:"purpose"`
		Units   []element                                       `json:"units"`
		Files   []element                                       `json:"files"`
	} `json:"spec"`
}

// element is a unit, which has a name, or a file, which has a path.
type element struct {
	Name string `json:"name"`
	Path string `json:"path"`
}

// handler reviews OperatingSystemConfigs. If a review fails, the handler denies the request, and
// gardenlet retries.
type handler struct {
	units unitSource
}

var _ admission.Handler = &handler{}

// Handle adds the script and the unit to an OperatingSystemConfig of purpose reconcile.
func (h *handler) Handle(ctx context.Context, request admission.Request) admission.Response {
	osc := &operatingSystemConfig{}
	if err := json.Unmarshal(request.Object.Raw, osc); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("decode the OperatingSystemConfig: %w", err))
	}
	if osc.Metadata.DeletionTimestamp != nil || osc.Spec.Purpose != extensionsv1alpha1.OperatingSystemConfigPurposeReconcile {
		return admission.Allowed("")
	}
	unit, err := h.units.unit(ctx, request.Namespace)
	if err != nil {
		log.FromContext(ctx).Info("Denied an OperatingSystemConfig", "namespace", request.Namespace, "name", request.Name, "reason", err.Error())
		return admission.Denied(err.Error())
	}
	if unit == nil {
		return admission.Allowed("")
	}
	return admission.Patched("",
		ensure("/spec/files", osc.Spec.Files, element{Path: script.Path}, script),
		ensure("/spec/units", osc.Spec.Units, element{Name: unit.Name}, unit))
}

// ensure returns the JSON patch operation for the list at path: it replaces the wanted element, or
// appends it if the list does not contain it.
func ensure(path string, list []element, wanted element, value any) jsonpatch.Operation {
	if len(list) == 0 { // the list may not exist
		return jsonpatch.NewOperation("add", path, []any{value})
	}
	if i := slices.Index(list, wanted); i >= 0 {
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
		// Extensions are read from the API server. gardenlet writes the OperatingSystemConfig right
		// after the status of the Extension has changed, when the manager's cache may be outdated.
		Webhook: &admission.Webhook{
			Handler:      &handler{unitSource{clusters: mgr.GetClient(), extensions: mgr.GetAPIReader()}},
			RecoverPanic: ptr.To(true),
		},
	}, nil
}

var script = extensionsv1alpha1.File{
	Path:        nodeconfig.ScriptPath,
	Permissions: ptr.To[uint32](nodeconfig.ScriptMode),
	Content: extensionsv1alpha1.FileContent{Inline: &extensionsv1alpha1.FileContentInline{
		Encoding: string(extensionsv1alpha1.B64FileCodecID),
		Data:     base64.StdEncoding.EncodeToString([]byte(nodeconfig.Script())),
	}},
}

// unitSource builds the unit for the nodes of the shoot in a namespace.
type unitSource struct {
	// clusters reads Clusters, perhaps from the manager's cache.
	clusters client.Reader
	// extensions reads Extensions, and never from the manager's cache.
	extensions client.Reader
}

// unit returns the unit for the caches that are listed in the status of the namespace's Extension.
// It returns nil if the nodes must not change or never had a cache, and an error if the Extension
// has no status, unless the shoot is self-hosted.
func (u unitSource) unit(ctx context.Context, namespace string) (*extensionsv1alpha1.Unit, error) {
	shoot, err := extensions.GetShoot(ctx, u.clusters, namespace) // decodes nothing else: a CloudProfile can take 200 KiB
	if err != nil {
		return nil, fmt.Errorf("read the Shoot of cluster %s: %w", namespace, err)
	}
	if shoot == nil {
		return nil, fmt.Errorf("cluster %s has no Shoot", namespace)
	}
	// The nodes of a shoot that is being deleted or hibernated must not change. A shoot that was
	// created hibernated has no endpoints yet.
	if shoot.DeletionTimestamp != nil || v1beta1helper.HibernationIsEnabled(shoot) {
		return nil, nil
	}
	status, cleanUps, err := u.status(ctx, namespace)
	// Gardener v1.150.0 writes the configs of a self-hosted shoot before the Extension, or without it.
	if (apierrors.IsNotFound(err) || errors.Is(err, errNoStatus)) && v1beta1helper.IsShootSelfHosted(shoot.Spec.Provider.Workers) {
		return nil, nil
	}
	if err != nil || status == nil {
		return nil, err
	}
	return &extensionsv1alpha1.Unit{
		Name:    nodeconfig.UnitName,
		Command: ptr.To(extensionsv1alpha1.CommandStart),
		Enable:  ptr.To(true),
		Content: ptr.To(nodeconfig.Unit(registries(status), cleanUps)),
		// gardener-node-agent restarts the unit when the script changes.
		FilePaths: []string{nodeconfig.ScriptPath},
	}, nil
}

var errNoStatus = errors.New("has no providerStatus yet; it gets one when its caches have endpoints")

// status returns the providerStatus of the namespace's Extension, and the number of clean-ups in
// its state. If the state cannot be read, the number is 0: the nodes keep their caches, and the
// controller reports the error. status returns nil if the shoot never had a cache, and an error if
// there is no providerStatus.
func (u unitSource) status(ctx context.Context, namespace string) (*v1alpha3.RegistryStatus, int64, error) {
	extension := &extensionsv1alpha1.Extension{}
	key := client.ObjectKey{Namespace: namespace, Name: v1alpha3.ExtensionType}
	if err := u.extensions.Get(ctx, key, extension); err != nil {
		return nil, 0, fmt.Errorf("read extension %s: %w", key, err)
	}
	if extension.Status.ProviderStatus == nil {
		return nil, 0, fmt.Errorf("extension %s: %w", key, errNoStatus)
	}
	status, err := v1alpha3.DecodeStatus(extension.Status.ProviderStatus.Raw)
	if err != nil {
		return nil, 0, fmt.Errorf("extension %s: %w", key, err)
	}
	if len(status.Caches) == 0 && extension.Status.State == nil {
		return nil, 0, nil
	}
	state, err := v1alpha3.DecodeState(extension.Status.State)
	if err != nil {
		log.FromContext(ctx).Error(err, "Ignored the number of clean-ups in status.state", "extension", key)
	}
	return status, state.CleanUps, nil
}

func registries(status *v1alpha3.RegistryStatus) []nodeconfig.Registry {
	found := make([]nodeconfig.Registry, 0, len(status.Caches))
	for _, cache := range status.Caches {
		registry := nodeconfig.Registry{
			Upstream:    cache.Upstream,
			Endpoint:    cache.Endpoint,
			UpstreamURL: cache.RemoteURL,
			UpstreamCA:  []byte(ptr.Deref(cache.UpstreamCABundle, "")),
		}
		if strings.HasPrefix(cache.Endpoint, "https:") {
			registry.EndpointCA = []byte(ptr.Deref(status.CABundle, ""))
		}
		found = append(found, registry)
	}
	return found
}
