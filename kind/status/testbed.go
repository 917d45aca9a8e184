package status

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/engine"
	"github.com/gardener-extensions/registry-cache/kind/gardener"
	"github.com/gardener-extensions/registry-cache/kind/progress"
	"github.com/gardener-extensions/registry-cache/kind/upstream"
)

// statusTimeout bounds OfTestbed, except for the start of an engine.
const statusTimeout = 30 * time.Second

// Testbed is the output of `testbed status`. Missing parts are empty.
type Testbed struct {
	Prefix    string            `json:"prefix"`
	Clusters  []Cluster         `json:"clusters"`
	Upstreams []Upstream        `json:"upstreams"`
	Versions  map[string]string `json:"versions"`
	// Report describes what the extension runs. It may be nil.
	Report kind.Report `json:"report,omitempty"`
	Garden *Garden     `json:"garden,omitempty"` // nil without a garden
}

// Cluster is one kind cluster.
type Cluster struct {
	Name       string `json:"name"`
	Role       string `json:"role"`
	Kubeconfig string `json:"kubeconfig,omitempty"`
	Nodes      []Node `json:"nodes,omitempty"`
	Problem    string `json:"problem,omitempty"`
}

// Upstream is one upstream registry. Requests counts the requests by accesslog.Asker since the
// container was created, without those of the testbed itself.
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
// testbed's own container engine if that has died. Without a testbed the status is empty. OfTestbed
// returns an *engine.Missing if the engine does not answer, and another error if a request fails.
func OfTestbed(ctx context.Context, t *kind.Testbed) (*Testbed, error) {
	status := &Testbed{Prefix: t.Prefix, Versions: map[string]string{"gardener": gardener.Version}}
	report := func(seed, shoot *cluster.Cluster) {
		if t.Extension.Reporter != nil {
			status.Report = t.Extension.Reporter.OfTestbed(ctx, seed, shoot)
		}
	}
	report(nil, nil)
	found, err := engine.Attach(ctx)
	if err != nil || found == nil {
		return status, err
	}
	ctx, cancel := progress.Within(ctx, statusTimeout, "no status")
	defer cancel()
	status.Versions["docker"] = found.Version

	seed := status.addCluster(ctx, "seed", t.SeedName(), t.State.SeedKubeconfig(), t.Extension.Reporter)
	report(seed, status.addCluster(ctx, "shoot", t.ShootName(), t.State.ShootKubeconfig(), t.Extension.Reporter))
	if t.Config.Garden && status.Exists() {
		status.Garden = &Garden{}
		if err := status.Garden.read(ctx, seed); err != nil {
			status.Garden.Problem = firstLine(err)
		}
	}
	return status, status.addUpstreams(ctx, t.Prefix)
}

// addCluster adds the cluster if it has a container, and returns it if its API server answers.
func (s *Testbed) addCluster(ctx context.Context, role, name, kubeconfig string, reporter kind.Reporter) *cluster.Cluster {
	loaded, err := cluster.Load(ctx, name, kubeconfig)
	if errors.Is(err, cluster.ErrNotFound) {
		return nil
	}
	status := Cluster{Name: name, Role: role, Kubeconfig: kubeconfig}
	if err == nil {
		err = status.addNodes(ctx, s, loaded, reporter)
	}
	if err != nil {
		status.Problem, loaded = firstLine(err), nil
	}
	s.Clusters = append(s.Clusters, status)
	return loaded
}

func (c *Cluster) addNodes(ctx context.Context, s *Testbed, loaded *cluster.Cluster, reporter kind.Reporter) error {
	nodes, objects, err := readNodes(ctx, loaded, reporter)
	c.Nodes = nodes
	for _, object := range objects {
		s.Versions["kubernetes"] = object.Status.NodeInfo.KubeletVersion
		s.Versions["containerd"] = strings.TrimPrefix(object.Status.NodeInfo.ContainerRuntimeVersion, "containerd://")
	}
	return err
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
