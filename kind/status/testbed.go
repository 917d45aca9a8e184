package status

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"strings"
	"time"

	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/cache"
	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/engine"
	"github.com/gardener-extensions/registry-cache/kind/gardener"
	"github.com/gardener-extensions/registry-cache/kind/gardenlet"
	"github.com/gardener-extensions/registry-cache/kind/progress"
	"github.com/gardener-extensions/registry-cache/kind/upstream"
)

// statusTimeout bounds OfShoot, and OfTestbed except for the start of an engine.
const statusTimeout = 30 * time.Second

// Testbed is the output of `testbed status`. Missing parts are empty.
type Testbed struct {
	Prefix string `json:"prefix"`
	// Owner is the directory of the checkout that owns the testbed, if it is not this one.
	Owner    string    `json:"owner,omitempty"`
	Clusters []Cluster `json:"clusters"`
	Caches   []Cache   `json:"caches"`
	// CachesProblem says why Caches may be incomplete.
	CachesProblem string            `json:"cachesProblem,omitempty"`
	Upstreams     []Upstream        `json:"upstreams"`
	Versions      map[string]string `json:"versions"`
}

// Cluster is one kind cluster.
type Cluster struct {
	Name       string `json:"name"`
	Role       string `json:"role"`
	Kubeconfig string `json:"kubeconfig,omitempty"`
	Nodes      []Node `json:"nodes,omitempty"`
	Problem    string `json:"problem,omitempty"`
}

// Cache is one cache in the shoot.
type Cache struct {
	Upstream string `json:"upstream"`
	Endpoint string `json:"endpoint"`
	Ready    bool   `json:"ready"`
}

// Upstream is one upstream registry. Requests counts the requests since its container was created,
// by accesslog.Asker. Requests of the testbed itself do not count.
type Upstream struct {
	Host     string         `json:"host"`
	Running  bool           `json:"running"`
	State    string         `json:"state"`
	Requests map[string]int `json:"requests,omitempty"`
	Problem  string         `json:"problem,omitempty"`
}

// Exists reports whether any part of the testbed exists.
func (s *Testbed) Exists() bool { return len(s.Clusters) > 0 || len(s.Upstreams) > 0 }

// OfTestbed reads the status of the testbed. It changes nothing, except that it restarts the
// testbed's own container engine if it has died. Without a testbed the status is empty. OfTestbed
// returns an *engine.Missing if the engine does not answer, and another error if it fails.
func OfTestbed(ctx context.Context, t *kind.Testbed) (*Testbed, error) {
	status := &Testbed{Prefix: t.Prefix, Versions: map[string]string{"gardener": gardener.Version}}
	found, err := engine.Attach(ctx)
	if err != nil || found == nil {
		return status, err
	}
	ctx, cancel := progress.Within(ctx, statusTimeout, "no status")
	defer cancel()
	status.Versions["docker"] = found.Version

	seen := t.State
	var other *kind.OtherCheckoutError
	if err := t.CheckOwner(ctx); errors.As(err, &other) {
		seen, status.Owner = other.State, other.State.Directory()
	} else if err != nil {
		return status, err
	}
	seed := status.addCluster(ctx, "seed", t.SeedName(), seen.SeedKubeconfig())
	if shoot := status.addCluster(ctx, "shoot", t.ShootName(), seen.ShootKubeconfig()); shoot != nil {
		status.addCaches(ctx, seed, shoot)
	}
	return status, status.addUpstreams(ctx, t.Prefix)
}

// addCluster adds the cluster if it has a container, and returns it if its API server answers.
func (s *Testbed) addCluster(ctx context.Context, role, name, kubeconfig string) *cluster.Cluster {
	loaded, err := cluster.Load(ctx, name, kubeconfig)
	if errors.Is(err, cluster.ErrNotFound) {
		return nil
	}
	status := Cluster{Name: name, Role: role, Kubeconfig: kubeconfig}
	if err == nil {
		err = status.addNodes(ctx, s, loaded)
	}
	if err != nil {
		status.Problem, loaded = firstLine(err), nil
	}
	s.Clusters = append(s.Clusters, status)
	return loaded
}

func (c *Cluster) addNodes(ctx context.Context, s *Testbed, loaded *cluster.Cluster) error {
	nodes, objects, err := readNodes(ctx, loaded)
	c.Nodes = nodes
	for _, object := range objects {
		s.Versions["kubernetes"] = object.Status.NodeInfo.KubeletVersion
		s.Versions["containerd"] = strings.TrimPrefix(object.Status.NodeInfo.ContainerRuntimeVersion, "containerd://")
	}
	return err
}

// addCaches adds the caches that run in the shoot. The seed may be nil.
func (s *Testbed) addCaches(ctx context.Context, seed, shoot *cluster.Cluster) {
	services, sets, err := cache.List(ctx, shoot)
	extensions := &extensionsv1alpha1.ExtensionList{}
	if err == nil && seed != nil {
		var api kubernetes.Interface
		if api, err = gardener.NewSeedClient(seed.RESTConfig()); err == nil {
			err = api.Client().List(ctx, extensions, client.InNamespace(gardenlet.Namespace(gardenlet.DefaultShoot)))
		}
	}
	if err != nil {
		s.CachesProblem = firstLine(err)
	}
	s.Caches = caches(services, sets, schemes(extensions.Items))
}

// schemes returns the URL scheme of each upstream's cache in the status of the Extensions.
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

// caches returns the caches of Services. A Service without an upstream is skipped: it has the
// extension's label, but was not created by the extension. An unknown scheme is omitted.
func caches(services []corev1.Service, sets []appsv1.StatefulSet, schemes map[string]string) []Cache {
	ready := map[string]bool{}
	for _, set := range sets {
		ready[set.Name] = set.Status.ReadyReplicas > 0
	}
	var found []Cache
	for _, service := range services {
		if upstream := service.Annotations[v1alpha3.AnnotationUpstream]; upstream != "" {
			endpoint := schemes[upstream] + net.JoinHostPort(service.Spec.ClusterIP, "5000")
			found = append(found, Cache{Upstream: upstream, Endpoint: endpoint, Ready: ready[service.Name]})
		}
	}
	return found
}

func (s *Testbed) addUpstreams(ctx context.Context, prefix string) error {
	registries, err := upstream.List(ctx, prefix)
	if err != nil {
		return err
	}
	for _, registry := range registries {
		status := Upstream{Host: registry.Host(), Running: registry.Running(), State: registry.Status()}
		if records, err := registry.Log(ctx); err != nil {
			status.Problem = firstLine(err)
		} else {
			status.Requests = map[string]int{}
			for _, record := range records.Pulls() {
				status.Requests[string(record.Asker)]++
			}
		}
		s.Upstreams = append(s.Upstreams, status)
	}
	return nil
}
