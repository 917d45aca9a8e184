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
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

// encodingBase64 is an encoding of inline files of OperatingSystemConfigs.
const encodingBase64 = "b64"

// script is the same for every node.
var script = base64.StdEncoding.EncodeToString([]byte(nodeconfig.Script()))

// mutator adds what nodes need to OperatingSystemConfigs of purpose reconcile, and leaves all else in them as it is. Gardener's
// generic mutator would decode kubelet's configuration and encode it again, for nobody, and lose what our version of it does
// not know.
type mutator struct {
	// clusters may read from a cache.
	clusters client.Reader
	// extensions must not.
	extensions client.Reader
}

var _ extensionswebhook.Mutator = &mutator{}

// Mutate adds the script, and the unit that runs it for the caches in the status of the Extension. While there is no such
// status, it fails, and with it the write of the OperatingSystemConfig: gardenlet retries.
func (m *mutator) Mutate(ctx context.Context, object, _ client.Object) error {
	osc, ok := object.(*extensionsv1alpha1.OperatingSystemConfig)
	if !ok {
		return fmt.Errorf("cannot mutate a %T", object)
	}
	if osc.DeletionTimestamp != nil || osc.Spec.Purpose != extensionsv1alpha1.OperatingSystemConfigPurposeReconcile {
		return nil
	}
	cluster, err := extensionscontroller.GetCluster(ctx, m.clusters, osc.Namespace)
	if err != nil {
		return fmt.Errorf("reading cluster %s: %w", osc.Namespace, err)
	}
	if cluster.Shoot == nil {
		return fmt.Errorf("cluster %s has no shoot", osc.Namespace)
	}
	if !keepsNodes(cluster) {
		return nil
	}
	status, err := m.status(ctx, osc.Namespace)
	if err != nil {
		return err
	}
	osc.Spec.Files = extensionswebhook.EnsureFileWithPath(osc.Spec.Files, extensionsv1alpha1.File{
		Path:        nodeconfig.ScriptPath,
		Permissions: ptr.To[uint32](nodeconfig.ScriptMode),
		Content:     extensionsv1alpha1.FileContent{Inline: &extensionsv1alpha1.FileContentInline{Encoding: encodingBase64, Data: script}},
	})
	osc.Spec.Units = extensionswebhook.EnsureUnitWithName(osc.Spec.Units, extensionsv1alpha1.Unit{
		Name:    nodeconfig.UnitName,
		Command: ptr.To(extensionsv1alpha1.CommandStart),
		Enable:  ptr.To(true),
		Content: ptr.To(nodeconfig.Unit(registries(status))),
		// gardener-node-agent restarts the unit when the script changes.
		FilePaths: []string{nodeconfig.ScriptPath},
	})
	return nil
}

// keepsNodes says whether there are nodes to configure. Those of a shoot that goes, or sleeps, are left as they are: a shoot
// that was created hibernated has no endpoints either.
func keepsNodes(cluster *extensionscontroller.Cluster) bool {
	return cluster.Shoot.DeletionTimestamp == nil && !extensionscontroller.IsHibernationEnabled(cluster)
}

// status returns the status of the namespace's Extension. It is an error if there is none.
func (m *mutator) status(ctx context.Context, namespace string) (*v1alpha3.RegistryStatus, error) {
	extension := &extensionsv1alpha1.Extension{}
	key := client.ObjectKey{Namespace: namespace, Name: extensionType}
	if err := m.extensions.Get(ctx, key, extension); err != nil {
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
