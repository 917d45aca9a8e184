//go:build e2e

package rig

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
	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

// Cleaning proves that nodes are cleaned before caches are deleted.
type Cleaning struct {
	pods, services *Recording
	// names and claims are the Services and volume claims that must be deleted, by upstream.
	names  map[string]string
	claims map[string][]string
	// vanished maps an upstream to the deletion event of its Service.
	vanished map[string]Event
}

// WatchCleaning starts to record changes of pods and Services. Call it before the removal.
func WatchCleaning(ctx context.Context, p *Run, hosts ...string) *Cleaning {
	p.Helper()
	c := &Cleaning{names: map[string]string{}, claims: map[string][]string{}, vanished: map[string]Event{}}
	c.pods = p.Record(ctx, p.Session.Shoot, corev1.SchemeGroupVersion.WithResource("pods"), metav1.NamespaceSystem)
	c.services = p.Record(ctx, p.Session.Shoot, corev1.SchemeGroupVersion.WithResource("services"), metav1.NamespaceSystem)
	services := p.Services(ctx)
	for _, host := range hosts {
		service, ok := services[host]
		if !ok {
			p.Fatalf("%s has no Service before the removal", host)
		}
		c.names[host] = service.Name
		c.claims[host] = ClaimsOf(ctx, p, service.Name)
		if len(c.claims[host]) == 0 {
			p.Fatalf("%s has no volume claim before the removal", host)
		}
	}
	return c
}

// ProveOrder proves that a cleaner finished on every worker before the first Service was deleted.
func (c *Cleaning) ProveOrder(ctx context.Context, p *Run) {
	p.Helper()
	events, err := c.pods.Events()
	p.Check(err)
	for _, worker := range p.Workers() {
		cleaned, ok := FirstEvent(events, func(e Event) bool { return ranOn(e, worker.Name()) })
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

// vanishTimeout suffices for the cleaner on a busy machine, and is below the extension's timeout.
const vanishTimeout = 2 * time.Minute

// AwaitVanished waits until the Services are deleted, or until the flow that removes them fails.
func (c *Cleaning) AwaitVanished(ctx context.Context, p *Run, flow *Background) {
	p.Helper()
	p.Await(ctx, fmt.Sprintf("the Services of %s are gone", labels(slices.Sorted(maps.Keys(c.names)))), vanishTimeout,
		func(context.Context) (bool, string, error) {
			events, err := c.services.Events()
			if err != nil {
				return false, "", err
			}
			for host, name := range c.names {
				if event, gone := FirstEvent(events, Deleted(name)); gone {
					c.vanished[host] = event
				}
			}
			return len(c.vanished) == len(c.names), fmt.Sprintf("%d of %d are gone", len(c.vanished), len(c.names)), flow.Failed()
		})
}

// ProveClaimsGone proves that the volume claims of the upstreams are deleted.
func (c *Cleaning) ProveClaimsGone(ctx context.Context, p *Run) {
	p.Helper()
	hosts := slices.Sorted(maps.Keys(c.claims))
	for _, host := range hosts {
		p.Await(ctx, fmt.Sprintf("the volume claims of %s are gone", host), 30*time.Second,
			func(ctx context.Context) (bool, string, error) {
				left, err := claimNames(ctx, p, func(name string) bool { return slices.Contains(c.claims[host], name) })
				return len(left) == 0, strings.Join(left, ", "), err
			})
	}
	p.Evidence("PVC of %s gone", labels(hosts))
}

// ranOn reports whether the event shows that a cleaner pod has finished on the node. The init
// containers do the work, so ranOn checks that they exited with code 0.
func ranOn(e Event, node string) bool {
	pod := &corev1.Pod{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(e.Object.Object, pod); err != nil {
		return false
	}
	statuses := pod.Status.InitContainerStatuses
	return ownedBy(pod, "DaemonSet", v1alpha3.CleanerDaemonSet) && pod.Spec.NodeName == node && len(statuses) > 0 &&
		!slices.ContainsFunc(statuses, func(status corev1.ContainerStatus) bool {
			return status.State.Terminated == nil || status.State.Terminated.ExitCode != 0
		})
}

func ownedBy(object metav1.Object, kind, name string) bool {
	owner := metav1.GetControllerOf(object)
	return owner != nil && owner.Kind == kind && owner.Name == name
}

// ClaimsOf returns the names of the volume claims of a StatefulSet's first pod: <template>-<set>-0.
func ClaimsOf(ctx context.Context, p *Run, statefulSet string) []string {
	p.Helper()
	return must(claimNames(ctx, p, func(name string) bool { return strings.HasSuffix(name, "-"+statefulSet+"-0") }))(p)
}

func claimNames(ctx context.Context, p *Run, keep func(string) bool) ([]string, error) {
	list := &corev1.PersistentVolumeClaimList{}
	if err := p.Session.Shoot.List(ctx, list); err != nil {
		return nil, fmt.Errorf("list volume claims: %w", err)
	}
	var names []string
	for _, claim := range list.Items {
		if keep(claim.Name) {
			names = append(names, claim.Name)
		}
	}
	return names, nil
}

// Unmanaged files below certs.d: the mirror configuration of a registry without a cache, and a note
// beside a hosts.toml of the extension.
const (
	unmanagedHosts = nodeconfig.CertsDir + "/unmanaged.example.test/hosts.toml"
	unmanagedNote  = nodeconfig.CertsDir + "/" + Alpha + "/operator-note.txt"
)

var unmanagedFiles = map[string]string{
	unmanagedHosts: "server = \"https://unmanaged.example.test\"\n",
	unmanagedNote:  "kept by the operator of the node\n",
}

// UnmanagedFiles maps a worker's name and the path of an unmanaged file to the file's fingerprint.
type UnmanagedFiles map[string]string

// PutUnmanagedFiles writes unmanaged files to every worker and removes them when the scenario ends.
func PutUnmanagedFiles(ctx context.Context, p *Run) UnmanagedFiles {
	p.Helper()
	fingerprints := UnmanagedFiles{}
	for _, worker := range p.Workers() {
		p.Afterwards(ctx, func(ctx context.Context) error {
			if _, err := worker.Script(ctx, removeUnmanagedScript); err != nil {
				return fmt.Errorf("remove the unmanaged files: %w", err)
			}
			return nil
		})
		for path, content := range unmanagedFiles {
			p.Check(worker.WriteFile(ctx, path, 0o644, []byte(content)))
			fingerprints[worker.Name()+path] = p.Fingerprint(ctx, worker, path)
		}
	}
	return fingerprints
}

// ProveUntouched proves that the files have not changed.
func (f UnmanagedFiles) ProveUntouched(ctx context.Context, p *Run) {
	p.Helper()
	for _, worker := range p.Workers() {
		for path := range unmanagedFiles {
			if now := p.Fingerprint(ctx, worker, path); now != f[worker.Name()+path] {
				p.Errorf("%s on %s has changed: was %s, is %s", path, worker.Name(), f[worker.Name()+path], now)
			}
		}
	}
	p.Evidence("%d unmanaged files unchanged", len(f))
}

const removeUnmanagedScript = `
rm -f ` + unmanagedHosts + ` ` + unmanagedNote + `
rmdir $(dirname ` + unmanagedHosts + `) $(dirname ` + unmanagedNote + `) 2>/dev/null || true`
