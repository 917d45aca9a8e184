package snapshot

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gardener/gardener/pkg/utils/kubernetes/health"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/cache"
)

const (
	// claimPrefix plus the name of the pod is the name of a cache's claim, see controller/cache.
	claimPrefix     = "cache-volume-"
	podReadyTimeout = 2 * time.Minute // bounds the restart of a cache
)

// cacheVolume is the volume of a pod of a cache: a folder on a node.
type cacheVolume struct{ claim, upstream, pod, node, folder string }

// cacheVolumes returns the volumes of all caches in the shoot, sorted by claim.
func cacheVolumes(ctx context.Context, t *kind.Testbed) ([]cacheVolume, error) {
	api, err := client.New(t.Shoot.RESTConfig(), client.Options{})
	if err != nil {
		return nil, err
	}
	var (
		claims  corev1.PersistentVolumeClaimList
		volumes corev1.PersistentVolumeList
	)
	services, _, err := cache.List(ctx, t.Shoot)
	err = errors.Join(err,
		api.List(ctx, &claims, client.InNamespace(metav1.NamespaceSystem), client.HasLabels{v1alpha3.LabelUpstreamHost}),
		api.List(ctx, &volumes))
	if err != nil {
		return nil, fmt.Errorf("list the volumes of the caches: %w", err)
	}
	return matchVolumes(services, claims.Items, volumes.Items)
}

// matchVolumes finds upstream, pod, node and folder of each claim. It skips unbound claims.
func matchVolumes(
	services []corev1.Service, claims []corev1.PersistentVolumeClaim, volumes []corev1.PersistentVolume,
) ([]cacheVolume, error) {
	upstreams := map[string]string{}
	for _, service := range services {
		upstreams[service.Labels[v1alpha3.LabelUpstreamHost]] = service.Annotations[v1alpha3.AnnotationUpstream]
	}
	var found []cacheVolume
	for _, claim := range claims {
		pod, ok := strings.CutPrefix(claim.Name, claimPrefix)
		i := slices.IndexFunc(volumes, func(v corev1.PersistentVolume) bool { return v.Name == claim.Spec.VolumeName })
		if !ok || i < 0 {
			continue
		}
		node, folder := nodeOfVolume(volumes[i]), folderOfVolume(volumes[i])
		if node == "" || folder == "" {
			return nil, fmt.Errorf("volume %s of claim %s is not a folder on a node: other volumes cannot be saved or restored",
				volumes[i].Name, claim.Name)
		}
		label := claim.Labels[v1alpha3.LabelUpstreamHost]
		found = append(found, cacheVolume{claim.Name, cmp.Or(upstreams[label], label), pod, node, folder})
	}
	slices.SortFunc(found, func(a, b cacheVolume) int { return cmp.Compare(a.claim, b.claim) })
	return found, nil
}

// folderOfVolume returns the folder of a hostPath or local volume, or "".
func folderOfVolume(volume corev1.PersistentVolume) string {
	switch {
	case volume.Spec.HostPath != nil:
		return volume.Spec.HostPath.Path
	case volume.Spec.Local != nil:
		return volume.Spec.Local.Path
	}
	return ""
}

// nodeOfVolume returns the node in the affinity of the volume, or "".
func nodeOfVolume(volume corev1.PersistentVolume) string {
	if volume.Spec.NodeAffinity == nil || volume.Spec.NodeAffinity.Required == nil {
		return ""
	}
	for _, term := range volume.Spec.NodeAffinity.Required.NodeSelectorTerms {
		for _, expression := range append(term.MatchExpressions, term.MatchFields...) {
			isName := expression.Key == corev1.LabelHostname || expression.Key == metav1.ObjectNameField
			if isName && expression.Operator == corev1.NodeSelectorOpIn && len(expression.Values) == 1 {
				return expression.Values[0]
			}
		}
	}
	return ""
}

// replacePod deletes the pod of a cache, whose processes node.sh has killed, and waits until the
// new pod is ready. The kubelet would restart the processes with a back-off that grows each time.
func replacePod(ctx context.Context, t *kind.Testbed, name string) error {
	api, err := client.New(t.Shoot.RESTConfig(), client.Options{})
	if err != nil {
		return err
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: name}}
	key := client.ObjectKeyFromObject(pod)
	if err := api.Get(ctx, key, pod); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read pod %s: %w", name, err)
	}
	before := pod.UID
	if err := api.Delete(ctx, pod, client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("replace pod %s: %w", name, err)
	}
	last := "not asked yet"
	err = wait.PollUntilContextTimeout(ctx, 300*time.Millisecond, podReadyTimeout, true, func(ctx context.Context) (bool, error) {
		now := &corev1.Pod{}
		asked := api.Get(ctx, key, now)
		last = fmt.Sprintf("phase %s (%v)", now.Status.Phase, asked)
		return asked == nil && isNewAndReady(now, before), nil
	})
	if err != nil {
		return fmt.Errorf("the cache is not ready %s after its volume was restored: pod %s: %s: %w", podReadyTimeout, name, last, err)
	}
	return nil
}

func isNewAndReady(pod *corev1.Pod, before types.UID) bool {
	return pod.UID != before && health.IsPodReady(pod)
}

// node is the script that runs on a node. The script is an argument, so it leaves no file there.
//
//go:embed node.sh
var node string

// argv returns one of these commands for the folder of a volume and a pod in kube-system:
//   - save POD FOLDER archives hard links that it creates while the pod's processes are paused.
//   - restore POD FOLDER replaces the content with an archive, and kills the pod's processes.
//   - size FOLDER prints the size in bytes.
func argv(verb string, arguments ...string) []string {
	return append([]string{"bash", "-c", node, "snapshot", verb}, arguments...)
}
