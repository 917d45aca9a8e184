package kind

import (
	"slices"

	"github.com/go-logr/logr"

	"github.com/gardener-extensions/registry-cache/kind/certificate"
	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/engine"
	"github.com/gardener-extensions/registry-cache/kind/gardenlet"
	"github.com/gardener-extensions/registry-cache/kind/image"
	"github.com/gardener-extensions/registry-cache/kind/upstream"
)

// Parts are what Up has found or made. Its parts are nil until then.
type Parts struct {
	Log logr.Logger
	// Planted is the bug that what ships is built with; nil is none.
	Planted *PlantedBug
	Engine  *engine.Engine
	// diskUnknown says that the disk could not be checked before the engine ran.
	DiskUnknown bool
	NodeImage   string
	CA          *certificate.CA
	Images      image.Set
	Seed        *cluster.Cluster
	Shoot       *cluster.Cluster
	Upstreams   upstream.Registries
	Gardenlet   *gardenlet.Gardenlet
}

// Upstream is the registry with this host name, one of upstream.Hosts; nil for another name and before Up.
func (t *Testbed) Upstream(host string) *upstream.Registry { return t.Upstreams.Get(host) }

// Nodes are those of both clusters.
func (t *Testbed) Nodes() []*cluster.Node { return slices.Concat(t.Seed.Nodes(), t.Shoot.Nodes()) }
