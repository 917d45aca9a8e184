package status

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"path"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/cache"
	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/engine"
	"github.com/gardener-extensions/registry-cache/kind/gardener"
	"github.com/gardener-extensions/registry-cache/kind/progress"
	"github.com/gardener-extensions/registry-cache/kind/readiness"
	"github.com/gardener-extensions/registry-cache/kind/upstream"
	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

// statusTimeout bounds Status, without the start of an engine: each part that does not answer costs a share of it.
const statusTimeout = 30 * time.Second

// Status looks at the testbed and changes nothing, but for starting an engine of ours that has died. Where nothing is
// there it returns an empty status. It fails only if the engine cannot be asked: with an *engine.Missing if one is there and does not
// answer.
func OfTestbed(ctx context.Context, t *kind.Testbed) (*Testbed, error) {
	status := &Testbed{Prefix: t.Prefix, Versions: map[string]string{"gardener": gardener.Version}}
	found, err := engine.Attach(ctx)
	if err != nil || found == nil {
		return status, err
	}
	ctx, cancel := progress.Within(ctx, statusTimeout, "no status")
	defer cancel()
	status.Versions["docker"] = found.Version
	if status.PlantedBug, err = t.PlantedBug(); err != nil {
		return status, err
	}

	seen := t.State
	if created, owner, err := t.Owner(ctx); err != nil {
		return status, err
	} else if owner == kind.OtherCheckout {
		seen, status.Owner = created, created.Directory()
	}
	status.addCluster(ctx, "seed", t.SeedName(), seen.SeedKubeconfig())
	if shoot := status.addCluster(ctx, "shoot", t.ShootName(), seen.ShootKubeconfig()); shoot != nil {
		status.addCaches(ctx, shoot)
	}
	return status, status.addUpstreams(ctx, t.Prefix)
}

// addCluster adds a cluster of which there is at least a container, and returns it if it answers.
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
		status.Problem = FirstLine(err)
	}
	s.Clusters = append(s.Clusters, status)
	if err != nil {
		return nil
	}
	return loaded
}

func (c *Cluster) addNodes(ctx context.Context, s *Testbed, loaded *cluster.Cluster) error {
	api, err := client.New(loaded.RESTConfig(), client.Options{})
	if err != nil {
		return err
	}
	objects := &corev1.NodeList{}
	listErr := api.List(ctx, objects)
	byName := map[string]corev1.Node{}
	for _, object := range objects.Items {
		byName[object.Name] = object
		s.Versions["kubernetes"] = object.Status.NodeInfo.KubeletVersion
		s.Versions["containerd"] = strings.TrimPrefix(object.Status.NodeInfo.ContainerRuntimeVersion, "containerd://")
	}
	for _, node := range loaded.Nodes() {
		object := byName[node.Name()]
		ready, _ := readiness.Node(&object)
		status := Node{Name: node.Name(), Ready: ready}
		if status.Mirrors, err = mirrors(ctx, node); err != nil {
			status.Problem = FirstLine(err)
		}
		c.Nodes = append(c.Nodes, status)
	}
	return listErr
}

// mirrors reads every hosts.toml of a node.
func mirrors(ctx context.Context, node *cluster.Node) ([]Mirror, error) {
	found, err := node.Exec(ctx, "find", nodeconfig.CertsDir, "-name", nodeconfig.HostsFile)
	if err != nil {
		return nil, err
	}
	var all []Mirror
	for _, file := range slices.Sorted(slices.Values(strings.Fields(found))) {
		content, err := node.ReadFile(ctx, file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return all, err
		}
		all = append(all, ParseMirror(path.Base(path.Dir(file)), content))
	}
	return all, nil
}

// addCaches adds the caches that run in the shoot, by their Services. A Service of somebody else that only carries our
// label has no upstream and is passed over.
func (s *Testbed) addCaches(ctx context.Context, shoot *cluster.Cluster) {
	services, sets, err := cache.List(ctx, shoot)
	if err != nil {
		s.CachesProblem = FirstLine(err)
		return
	}
	ready := map[string]bool{}
	for _, set := range sets {
		ready[set.Name] = set.Status.ReadyReplicas > 0
	}
	for _, service := range services {
		upstream := service.Annotations[v1alpha3.AnnotationUpstream]
		if upstream == "" {
			continue
		}
		s.Caches = append(s.Caches, Cache{
			Upstream: upstream,
			Endpoint: "http://" + net.JoinHostPort(service.Spec.ClusterIP, "5000"),
			Ready:    ready[service.Name],
		})
	}
}

func (s *Testbed) addUpstreams(ctx context.Context, prefix string) error {
	registries, err := upstream.List(ctx, prefix)
	if err != nil {
		return err
	}
	for _, registry := range registries {
		status := Upstream{Host: registry.Host(), Running: registry.Running(), State: registry.Status()}
		if records, err := registry.Log(ctx); err != nil {
			status.Problem = FirstLine(err)
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

func FirstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}
