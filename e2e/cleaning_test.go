//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/e2e/rig"
)

// cleaning contains the recordings that prove that nodes are cleaned before caches are deleted.
type cleaning struct {
	pods, services *rig.Recording
	// names maps an upstream to the name of its Service, which must be deleted.
	names map[string]string
	// vanished maps an upstream to the deletion event of its Service.
	vanished map[string]rig.Event
}

// watchCleaning starts to record changes to pods and Services. Call it before the removal.
func watchCleaning(ctx context.Context, p *rig.Run, hosts ...string) *cleaning {
	p.Helper()
	c := &cleaning{names: map[string]string{}, vanished: map[string]rig.Event{}}
	c.pods = p.Record(ctx, p.Session.Shoot, corev1.SchemeGroupVersion.WithResource("pods"), metav1.NamespaceSystem)
	c.services = p.Record(ctx, p.Session.Shoot, corev1.SchemeGroupVersion.WithResource("services"), metav1.NamespaceSystem)
	services := p.Services(ctx)
	for _, host := range hosts {
		service, ok := services[host]
		if !ok {
			p.Fatalf("%s has no Service before the removal", host)
		}
		c.names[host] = service.Name
		if len(p.Claims(ctx, host)) == 0 {
			p.Fatalf("%s has no volume claim before the removal", host)
		}
	}
	return c
}

// proveOrder proves that a cleaner finished on every worker before the first Service was deleted.
func (c *cleaning) proveOrder(ctx context.Context, p *rig.Run) {
	p.Helper()
	events, err := c.pods.Events()
	p.Check(err)
	for _, worker := range p.Workers() {
		cleaned, ok := rig.FirstEvent(events, func(e rig.Event) bool { return ranOn(e, worker.Name()) })
		if !ok {
			p.Errorf("no pod of %s finished its init containers on %s", v1alpha3.CleanerDaemonSet, worker.Name())
			continue
		}
		for _, host := range slices.Sorted(maps.Keys(c.vanished)) {
			if cleaned.Revision >= c.vanished[host].Revision {
				p.Errorf("%s was cleaned at revision %d, after the Service of %s was deleted at %d",
					worker.Name(), cleaned.Revision, host, c.vanished[host].Revision)
			}
		}
	}
	if p.Failed() {
		p.FailNow()
	}
	p.Evidence("cleaner ran on %d of %d workers before the Service was deleted", len(p.Workers()), len(p.Workers()))
}

// vanishTimeout bounds the time until the Services are deleted. It suffices for the cleaner on a
// busy machine; gardenlet waits longer for the extension.
const vanishTimeout = 2 * time.Minute

// awaitVanished waits until the Services are deleted, or until the flow that removes them fails.
func (c *cleaning) awaitVanished(ctx context.Context, p *rig.Run, flow *rig.Background) {
	p.Helper()
	p.Await(ctx, fmt.Sprintf("the Services of %s are gone", c.upstreams()), vanishTimeout,
		func(context.Context) (bool, string, error) {
			events, err := c.services.Events()
			if err != nil {
				return false, "", err
			}
			for host, name := range c.names {
				if event, gone := rig.FirstEvent(events, rig.Deleted(name)); gone {
					c.vanished[host] = event
				}
			}
			return len(c.vanished) == len(c.names), fmt.Sprintf("%d of %d are gone", len(c.vanished), len(c.names)), flow.Failed()
		})
}

// proveClaimsGone proves that the volume claims of the upstreams are deleted.
func (c *cleaning) proveClaimsGone(ctx context.Context, p *rig.Run) {
	p.Helper()
	for host := range c.names {
		p.Await(ctx, fmt.Sprintf("the volume claims of %s are gone", host), 30*time.Second, func(ctx context.Context) (bool, string, error) {
			left := p.Claims(ctx, host)
			return len(left) == 0, strings.Join(left, ", "), nil
		})
	}
	p.Evidence("PVC of %s gone", c.upstreams())
}

// upstreams returns the short names of the upstreams.
func (c *cleaning) upstreams() string {
	var short []string
	for _, host := range slices.Sorted(maps.Keys(c.names)) {
		short = append(short, rig.Label(host))
	}
	return strings.Join(short, ", ")
}

// ranOn reports whether the event shows that a cleaner pod has finished on the node. The init
// containers do the work, so ranOn checks that they exited with code 0.
func ranOn(e rig.Event, node string) bool {
	pod := &corev1.Pod{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(e.Object.Object, pod); err != nil {
		return false
	}
	statuses := pod.Status.InitContainerStatuses
	return rig.OfCleaner(pod) && pod.Spec.NodeName == node && len(statuses) > 0 &&
		!slices.ContainsFunc(statuses, func(status corev1.ContainerStatus) bool {
			return status.State.Terminated == nil || status.State.Terminated.ExitCode != 0
		})
}

// unmanagedContents maps the paths of the unmanaged files to their contents.
var unmanagedContents = map[string]string{
	rig.UnmanagedHosts: "server = \"https://unmanaged.example.test\"\n",
	rig.UnmanagedNote:  "kept by the operator of the node\n",
}

// unmanagedFiles maps a worker's name and the path of an unmanaged file to the file's fingerprint.
type unmanagedFiles map[string]string

// putUnmanagedFiles writes unmanaged files to every worker, and returns their fingerprints. It
// removes the files when the scenario ends.
func putUnmanagedFiles(ctx context.Context, p *rig.Run) unmanagedFiles {
	p.Helper()
	fingerprints := unmanagedFiles{}
	for _, worker := range p.Workers() {
		p.Afterwards(ctx, func(ctx context.Context) error {
			if _, err := worker.Script(ctx, rig.RemoveUnmanagedScript); err != nil {
				return fmt.Errorf("remove the unmanaged files: %w", err)
			}
			return nil
		})
		for path, content := range unmanagedContents {
			p.Check(worker.WriteFile(ctx, path, 0o644, []byte(content)))
			fingerprints[worker.Name()+path] = p.Fingerprint(ctx, worker, path)
		}
	}
	return fingerprints
}

// proveUntouched proves that the files have not changed.
func (f unmanagedFiles) proveUntouched(ctx context.Context, p *rig.Run) {
	p.Helper()
	for _, worker := range p.Workers() {
		for path := range unmanagedContents {
			if now := p.Fingerprint(ctx, worker, path); now != f[worker.Name()+path] {
				p.Errorf("%s on %s has changed: was %s, is %s", path, worker.Name(), f[worker.Name()+path], now)
			}
		}
	}
	p.Evidence("%d unmanaged files unchanged", len(f))
}
