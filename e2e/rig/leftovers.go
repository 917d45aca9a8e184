//go:build e2e

package rig

import (
	"context"
	"errors"
	"fmt"
	"time"

	resourcemanagerconfigv1alpha1 "github.com/gardener/gardener/pkg/apis/config/resourcemanager/v1alpha1"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	"github.com/gardener/gardener/pkg/resourcemanager/controller/garbagecollector"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/cachetest/original"
	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

// IgnoreCaches sets or removes the annotation "ignore" on the ManagedResources with the objects of
// the caches and with their Services.
func IgnoreCaches(ctx context.Context, p *Run, ignore bool) error {
	value := "null"
	if ignore {
		value = `"true"`
	}
	patch := client.RawPatch(client.Merge.Type(),
		fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%s}}}`, resourcesv1alpha1.Ignore, value))
	for _, name := range []string{v1alpha3.ManagedResourceCaches, v1alpha3.ManagedResourceServices} {
		resource := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: p.Session.Namespace(), Name: name}}
		if err := p.Session.Seed.Patch(ctx, resource, patch); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("annotate ManagedResource %s: %w", name, err)
		}
	}
	return nil
}

// Cordon sets whether a node is unschedulable.
func Cordon(ctx context.Context, p *Run, node string, unschedulable bool) error {
	object := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}
	patch := client.RawPatch(client.Merge.Type(), fmt.Appendf(nil, `{"spec":{"unschedulable":%t}}`, unschedulable))
	if err := p.Session.Shoot.Patch(ctx, object, patch); err != nil {
		return fmt.Errorf("set unschedulable of %s to %t: %w", node, unschedulable, err)
	}
	return nil
}

// UncordonWorkers uncordons all cordoned nodes.
func UncordonWorkers(ctx context.Context, p *Run) error {
	nodes := &corev1.NodeList{}
	if err := p.Session.Shoot.List(ctx, nodes, client.MatchingFields{"spec.unschedulable": "true"}); err != nil {
		return fmt.Errorf("list the nodes: %w", err)
	}
	for _, node := range nodes.Items {
		if err := Cordon(ctx, p, node.Name, false); err != nil {
			return err
		}
	}
	return nil
}

// Files and tables that scenarios create or change on a node until they end.
const (
	// UnmanagedHosts is the hosts.toml of a registry without a cache, and UnmanagedNote is a file next
	// to a hosts.toml of the extension.
	UnmanagedHosts = nodeconfig.CertsDir + "/unmanaged.example.test/hosts.toml"
	UnmanagedNote  = nodeconfig.CertsDir + "/" + Alpha + "/operator-note.txt"
	// RemoveUnmanagedScript removes UnmanagedHosts and UnmanagedNote.
	RemoveUnmanagedScript = `
rm -f ` + UnmanagedHosts + ` ` + UnmanagedNote + `
rmdir $(dirname ` + UnmanagedHosts + `) $(dirname ` + UnmanagedNote + `) 2>/dev/null || true`

	// BusyTable is a table of nftables that drops new connections to a cache.
	BusyTable = "e2e-busy"
	// OwnersFolder contains the file to which an owner has linked a hosts.toml.
	OwnersFolder = "/etc/containerd/e2e-owner"
	// Mark is the first line of a hosts.toml that a scenario has written.
	Mark = "# e2e"
	// ContainerdConfig is the configuration of containerd. A scenario that changes this file keeps the
	// original next to it, with the suffix .original.
	ContainerdConfig = "/etc/containerd/config.toml"
	// UndoScript removes BusyTable, OwnersFolder with the links to it, and each hosts.toml that
	// contains Mark. It restores containerd's configuration, and starts the extension's unit if a
	// scenario has stopped it.
	UndoScript = `
systemctl start ` + nodeconfig.UnitName + ` 2>/dev/null || true
grep -lsxF '` + Mark + `' ` + nodeconfig.CertsDir + `/*/hosts.toml | xargs -r rm -f -- || true
nft delete table inet ` + BusyTable + ` 2>/dev/null || true
find ` + nodeconfig.CertsDir + ` -type l -lname '` + OwnersFolder + `/*' -delete 2>/dev/null || true
rm -rf -- ` + OwnersFolder + `
if [[ -e ` + ContainerdConfig + `.original ]]; then
  mv -fT -- ` + ContainerdConfig + `.original ` + ContainerdConfig + `
  systemctl restart containerd.service
fi
`
)

// CollectGarbage runs the garbage collector of gardener-resource-manager. It deletes the
// garbage-collectable Secrets and ConfigMaps in the shoot that are older than a minute and that
// nothing refers to. gardener-resource-manager itself runs the collector when it starts and every
// 12 hours, for objects that are older than ten minutes. If the content of an earlier scenario is
// deployed again during that run, the collector can delete a Secret that is in use again. The pod
// then waits a minute or two for the Secret (gardener v1.150.0). So scenarios call CollectGarbage
// before they start gardener-resource-manager with other content.
func CollectGarbage(ctx context.Context, p *Run) {
	p.Helper()
	collector := garbagecollector.Reconciler{
		TargetClient: p.Session.Shoot, Clock: clock.RealClock{}, MinimumObjectLifetime: ptr.To(time.Minute),
		Config: resourcemanagerconfigv1alpha1.GarbageCollectorControllerConfig{SyncPeriod: &metav1.Duration{}},
	}
	_, err := collector.Reconcile(logr.NewContext(ctx, logr.Discard()), reconcile.Request{})
	p.Check(err)
}

// UndoLeftovers reverts what a killed earlier run may have left on a kept testbed. If a scenario of
// this run has failed, it also ends the faults that this scenario could not end.
func UndoLeftovers(ctx context.Context, p *Run) error {
	var failed error
	if p.Session.Disturbed.Load() {
		failed = ClearFaults(ctx, p) // first: a machine may be lost
	}
	failed = errors.Join(failed, IgnoreCaches(ctx, p, false), UncordonWorkers(ctx, p), original.RemoveWebhook(ctx, p.Session.Seed))
	for _, worker := range p.Session.Testbed.Shoot.Workers() {
		// The scripts run in subshells, because startAgentScript exits if there is nothing to undo.
		_, err := worker.Script(ctx, fmt.Sprintf("(%s\n)\n(%s\n)\n(%s\n)", startAgentScript, RemoveUnmanagedScript, UndoScript))
		failed = errors.Join(failed, err)
	}
	return failed
}
