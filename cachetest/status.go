package cachetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"path"
	"slices"
	"strconv"
	"strings"

	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/gardener"
	"github.com/gardener-extensions/registry-cache/kind/gardenlet"
	"github.com/gardener-extensions/registry-cache/kind/status"
	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

// reporter adds caches and mirrors to the status.
type reporter struct{}

func (reporter) Units() []string { return []string{nodeconfig.UnitName} }

// Files returns the command that prints the script's state and its age.
func (reporter) Files() map[string][]string {
	return map[string][]string{"script.txt": nodeconfig.StateCommand()}
}

// nodeReport describes what the extension has configured on a node.
type nodeReport struct {
	// Mirrors are the effective hosts.toml files, ordered by upstream.
	Mirrors []nodeconfig.HostConfig `json:"mirrors,omitempty"`
	// Caches contains the script's state of each upstream.
	Caches []nodeconfig.State `json:"caches,omitempty"`
}

// OfNode returns a node's mirrors and caches, and an error if the script's loop is dead.
func (reporter) OfNode(ctx context.Context, machine *cluster.Node) (kind.Report, error) {
	return readNode(ctx, machine)
}

func readNode(ctx context.Context, machine *cluster.Node) (*nodeReport, error) {
	report := &nodeReport{}
	found, err := machine.Exec(ctx, "find", nodeconfig.CertsDir, "-name", nodeconfig.HostsFile)
	if err != nil {
		return report, err
	}
	for _, file := range slices.Sorted(slices.Values(strings.Fields(found))) {
		content, err := machine.ReadFile(ctx, file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return report, err
		}
		report.Mirrors = append(report.Mirrors, nodeconfig.ParseHosts(path.Base(path.Dir(file)), content))
	}
	text, err := machine.Exec(ctx, nodeconfig.StateCommand()...)
	if err != nil {
		return report, err
	}
	state, err := nodeconfig.ParseState(text)
	if err != nil {
		return report, err
	}
	report.Caches = state.Upstreams
	if dead := state.Dead(); dead != "" {
		err = errors.New(nodeconfig.UnitName + ": " + dead)
	}
	return report, err
}

// Write prints the mirrors, and why pulls do not go through a cache.
func (r *nodeReport) Write(w io.Writer) {
	for _, mirror := range r.Mirrors {
		fmt.Fprintf(w, "      %s\t%s\n", mirror.Upstream, route(mirror))
	}
	for _, state := range r.Caches {
		if state.Route != nodeconfig.Mirror {
			fmt.Fprintf(w, "      %s\t%s\n", state.Upstream, state)
		}
	}
}

// route returns the hosts that containerd tries, for example "http://10.96.0.7:5000, then
// https://alpha.upstream.test".
func route(m nodeconfig.HostConfig) string {
	if m.Problem != "" {
		return m.Problem
	}
	text := strings.Join(append(slices.Clone(m.Hosts), m.Server), ", then ")
	if !m.Managed {
		text += "  (unmanaged)"
	}
	return text
}

// testbedReport lists the caches in the shoot.
type testbedReport struct {
	Caches []cacheStatus `json:"caches"`
	// CachesProblem is the reason why Caches may be incomplete.
	CachesProblem string `json:"cachesProblem,omitempty"`
}

// cacheStatus is one cache in the shoot.
type cacheStatus struct {
	Upstream string `json:"upstream"`
	Endpoint string `json:"endpoint"`
	Ready    bool   `json:"ready"`
}

func (reporter) OfTestbed(ctx context.Context, seed, shoot *cluster.Cluster) kind.Report {
	if shoot == nil {
		return testbedReport{}
	}
	services, sets, err := List(ctx, shoot)
	extensions := &extensionsv1alpha1.ExtensionList{}
	if err == nil && seed != nil {
		var api kubernetes.Interface
		if api, err = gardener.NewSeedClient(seed.RESTConfig()); err == nil {
			err = api.Client().List(ctx, extensions, client.InNamespace(gardenlet.Namespace(gardenlet.DefaultShoot)))
		}
	}
	var problem string
	if err != nil {
		problem, _, _ = strings.Cut(err.Error(), "\n")
	}
	return testbedReport{caches(services, sets, schemes(extensions.Items)), problem}
}

// schemes returns the URL scheme of each upstream's cache from the status of the Extensions.
func schemes(extensions []extensionsv1alpha1.Extension) map[string]string {
	found := map[string]string{}
	for _, extension := range extensions {
		var status v1alpha3.RegistryStatus
		raw := extension.Status.ProviderStatus
		if extension.Spec.Type != v1alpha3.ExtensionType || raw == nil || json.Unmarshal(raw.Raw, &status) != nil {
			continue
		}
		for _, registry := range status.Caches {
			if scheme, _, ok := strings.Cut(registry.Endpoint, "://"); ok {
				found[registry.Upstream] = scheme + "://"
			}
		}
	}
	return found
}

// caches returns the cache of each Service. A Service without an upstream is skipped: it has the
// extension's label, but was not created by the extension. An unknown scheme is omitted.
func caches(services []corev1.Service, sets []appsv1.StatefulSet, schemes map[string]string) []cacheStatus {
	ready := map[string]bool{}
	for _, set := range sets {
		ready[set.Name] = set.Status.ReadyReplicas > 0
	}
	var found []cacheStatus
	for _, service := range services {
		if upstream := service.Annotations[v1alpha3.AnnotationUpstream]; upstream != "" {
			endpoint := schemes[upstream] + net.JoinHostPort(service.Spec.ClusterIP, strconv.Itoa(v1alpha3.CachePort))
			found = append(found, cacheStatus{Upstream: upstream, Endpoint: endpoint, Ready: ready[service.Name]})
		}
	}
	return found
}

func (r testbedReport) Write(w io.Writer) {
	fmt.Fprintln(w, strings.TrimSpace("CACHES  "+r.CachesProblem))
	for _, cache := range r.Caches {
		fmt.Fprintf(w, "  %s %s\t%s\n", status.Mark(cache.Ready), cache.Upstream, cache.Endpoint)
	}
}
