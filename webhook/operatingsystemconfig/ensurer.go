package operatingsystemconfig

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	extensionscontroller "github.com/gardener/gardener/extensions/pkg/controller"
	extensionswebhook "github.com/gardener/gardener/extensions/pkg/webhook"
	extensionscontextwebhook "github.com/gardener/gardener/extensions/pkg/webhook/context"
	"github.com/gardener/gardener/extensions/pkg/webhook/controlplane/genericmutator"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

// encodingBase64 is an encoding of inline files of OperatingSystemConfigs.
const encodingBase64 = "b64"

// ensurer adds what nodes need to OperatingSystemConfigs of purpose reconcile; the mutator calls it for no other.
type ensurer struct {
	genericmutator.NoopEnsurer
	reader client.Reader
}

var _ genericmutator.Ensurer = &ensurer{}

// newEnsurer returns an ensurer that reads the Extension by reader, which must not be a cache.
func newEnsurer(reader client.Reader) *ensurer {
	return &ensurer{reader: reader}
}

// EnsureAdditionalFiles adds the script.
func (e *ensurer) EnsureAdditionalFiles(
	ctx context.Context, gctx extensionscontextwebhook.GardenContext, files, _ *[]extensionsv1alpha1.File,
) error {
	if namespace, err := shootNamespace(ctx, gctx); namespace == "" {
		return err
	}
	*files = extensionswebhook.EnsureFileWithPath(*files, extensionsv1alpha1.File{
		Path:        nodeconfig.ScriptPath,
		Permissions: ptr.To[uint32](nodeconfig.ScriptMode),
		Content: extensionsv1alpha1.FileContent{Inline: &extensionsv1alpha1.FileContentInline{
			Encoding: encodingBase64,
			Data:     base64.StdEncoding.EncodeToString([]byte(nodeconfig.Script())),
		}},
	})
	return nil
}

// EnsureAdditionalUnits adds the unit that runs the script for the caches in the status of the Extension. While there is
// no such status, it fails, and with it the write of the OperatingSystemConfig: gardenlet retries.
func (e *ensurer) EnsureAdditionalUnits(
	ctx context.Context, gctx extensionscontextwebhook.GardenContext, units, _ *[]extensionsv1alpha1.Unit,
) error {
	namespace, err := shootNamespace(ctx, gctx)
	if namespace == "" {
		return err
	}
	status, err := e.status(ctx, namespace)
	if err != nil {
		return err
	}
	*units = extensionswebhook.EnsureUnitWithName(*units, extensionsv1alpha1.Unit{
		Name:    nodeconfig.UnitName,
		Command: ptr.To(extensionsv1alpha1.CommandStart),
		Enable:  ptr.To(true),
		Content: ptr.To(nodeconfig.Unit(registries(status))),
		// gardener-node-agent restarts the unit when the script changes.
		FilePaths: []string{nodeconfig.ScriptPath},
	})
	return nil
}

// shootNamespace returns the namespace of the shoot. It is empty if the nodes of the shoot are left as they are, because
// they go away, or there are none: a shoot that was created hibernated has no endpoints either.
func shootNamespace(ctx context.Context, gctx extensionscontextwebhook.GardenContext) (string, error) {
	cluster, err := gctx.GetCluster(ctx) // read once for each admission
	if err != nil {
		return "", fmt.Errorf("reading the cluster: %w", err)
	}
	if cluster.Shoot.DeletionTimestamp != nil || extensionscontroller.IsHibernationEnabled(cluster) {
		return "", nil
	}
	return cluster.ObjectMeta.Name, nil
}

// status returns the status of the namespace's Extension. It is an error if there is none.
func (e *ensurer) status(ctx context.Context, namespace string) (*v1alpha3.RegistryStatus, error) {
	extension := &extensionsv1alpha1.Extension{}
	key := client.ObjectKey{Namespace: namespace, Name: extensionType}
	if err := e.reader.Get(ctx, key, extension); err != nil {
		return nil, fmt.Errorf("reading extension %s: %w", key, err)
	}
	if extension.Status.ProviderStatus == nil {
		return nil, fmt.Errorf("extension %s: %w", key, errNoStatus)
	}
	status, err := v1alpha3.DecodeStatus(extension.Status.ProviderStatus.Raw)
	if err != nil {
		return nil, fmt.Errorf("extension %s: %w", key, err)
	}
	return status, nil
}

// registries returns the caches in status as nodes see them.
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

var errNoStatus = errors.New("has no providerStatus yet; it gets one as soon as its caches have endpoints")
