package operatingsystemconfig

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1beta1helper "github.com/gardener/gardener/pkg/api/core/v1beta1/helper"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"github.com/gardener/gardener/pkg/extensions"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

// encodingBase64 is the encoding of the inline file.
const encodingBase64 = "b64"

// script is the file that every node gets.
var script = extensionsv1alpha1.File{
	Path:        nodeconfig.ScriptPath,
	Permissions: ptr.To[uint32](nodeconfig.ScriptMode),
	Content: extensionsv1alpha1.FileContent{Inline: &extensionsv1alpha1.FileContentInline{
		Encoding: encodingBase64,
		Data:     base64.StdEncoding.EncodeToString([]byte(nodeconfig.Script())),
	}},
}

// nodes determines the script and unit of the nodes of each shoot of a seed.
type nodes struct {
	// clusters may read from a cache.
	clusters client.Reader
	// extensions must not read from a cache.
	extensions client.Reader
}

// unit returns the unit that configures the caches in the status of the namespace's Extension. It
// returns nil if the shoot's nodes must stay as they are, and an error if there is no such status
// yet.
func (n nodes) unit(ctx context.Context, namespace string) (*extensionsv1alpha1.Unit, error) {
	shoot, err := n.shoot(ctx, namespace)
	if err != nil {
		return nil, err
	}
	if !hasRunningNodes(shoot) {
		return nil, nil
	}
	status, cleanUps, err := n.status(ctx, namespace)
	if err != nil {
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

// shoot returns the Shoot of the namespace's Cluster. It decodes nothing else: the CloudProfile can
// be 200 KiB, which would be most of the cost of a review.
func (n nodes) shoot(ctx context.Context, namespace string) (*gardencorev1beta1.Shoot, error) {
	cluster := &extensionsv1alpha1.Cluster{}
	if err := n.clusters.Get(ctx, client.ObjectKey{Name: namespace}, cluster); err != nil {
		return nil, fmt.Errorf("reading cluster %s: %w", namespace, err)
	}
	shoot, err := extensions.ShootFromCluster(cluster)
	if err != nil {
		return nil, fmt.Errorf("decoding the Shoot in cluster %s: %w", namespace, err)
	}
	if shoot == nil {
		return nil, fmt.Errorf("cluster %s has no Shoot", namespace)
	}
	return shoot, nil
}

// hasRunningNodes returns false if the shoot is being deleted or hibernated. Its nodes stay as they
// are then. A shoot that was created hibernated has no endpoints either.
func hasRunningNodes(shoot *gardencorev1beta1.Shoot) bool {
	return shoot.DeletionTimestamp == nil && !v1beta1helper.HibernationIsEnabled(shoot)
}

// status returns the providerStatus of the namespace's Extension, and the number of clean-ups from
// its state. It returns an error if there is no providerStatus.
func (n nodes) status(ctx context.Context, namespace string) (*v1alpha3.RegistryStatus, int64, error) {
	extension := &extensionsv1alpha1.Extension{}
	key := client.ObjectKey{Namespace: namespace, Name: v1alpha3.ExtensionType}
	if err := n.extensions.Get(ctx, key, extension); err != nil {
		return nil, 0, fmt.Errorf("reading extension %s: %w", key, err)
	}
	if extension.Status.ProviderStatus == nil {
		return nil, 0, fmt.Errorf("extension %s: %w", key, errNoStatus)
	}
	status, err := v1alpha3.DecodeStatus(extension.Status.ProviderStatus.Raw)
	if err != nil {
		return nil, 0, fmt.Errorf("extension %s: %w", key, err)
	}
	state, err := v1alpha3.DecodeState(extension.Status.State)
	if err != nil {
		return nil, 0, fmt.Errorf("extension %s: %w", key, err)
	}
	return status, state.CleanUps, nil
}

// registries converts the caches in status to the input of the node script.
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

var errNoStatus = errors.New("has no providerStatus yet; it gets one when its caches have endpoints")
