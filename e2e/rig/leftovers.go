//go:build e2e

package rig

import (
	"context"
	"errors"
	"fmt"

	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// blackholeTable is the table of the node's packet filter that drops what goes to a cache.
const BlackholeTable = "e2e-blackhole"

// endBlackholeScript does nothing on a node without one.
const EndBlackholeScript = `
nft list table inet ` + BlackholeTable + ` >/dev/null 2>&1 || exit 0
nft delete table inet ` + BlackholeTable

func IgnoreCaches(ctx context.Context, p *Run, ignore bool) error {
	resource := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: ShootNamespace, Name: CachesManagedResource}}
	value := "null"
	if ignore {
		value = `"true"`
	}
	patch := client.RawPatch(client.Merge.Type(),
		fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%s}}}`, resourcesv1alpha1.Ignore, value))
	if err := p.Session.Seed.Patch(ctx, resource, patch); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("annotate the caches' ManagedResource: %w", err)
	}
	return nil
}

func Cordon(ctx context.Context, p *Run, node string, unschedulable bool) error {
	object := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}
	patch := client.RawPatch(client.Merge.Type(), fmt.Appendf(nil, `{"spec":{"unschedulable":%t}}`, unschedulable))
	if err := p.Session.Shoot.Patch(ctx, object, patch); err != nil {
		return fmt.Errorf("set unschedulable of %s to %t: %w", node, unschedulable, err)
	}
	return nil
}

// uncordonWorkers lets the workers take pods again, where there is one that does not.
func UncordonWorkers(ctx context.Context, p *Run) error {
	nodes := &corev1.NodeList{}
	if err := p.Session.Shoot.List(ctx, nodes); err != nil {
		return fmt.Errorf("list the nodes: %w", err)
	}
	for _, node := range nodes.Items {
		if node.Spec.Unschedulable {
			if err := Cordon(ctx, p, node.Name, false); err != nil {
				return err
			}
		}
	}
	return nil
}

// undoLeftovers takes back what a scenario of a run that was killed may have left on a kept testbed.
func UndoLeftovers(ctx context.Context, p *Run) error {
	failed := errors.Join(IgnoreCaches(ctx, p, false), AllowServices(ctx, p), UncordonWorkers(ctx, p))
	for _, worker := range p.Session.Testbed.Shoot.Workers() {
		// Each part is a subshell, because it exits where there is nothing to undo.
		_, err := worker.Script(ctx, fmt.Sprintf("(%s\n)\n(%s\n)\n(%s\n)", releaseScript, EndBlackholeScript, removeForeignScript))
		failed = errors.Join(failed, err)
	}
	return failed
}
