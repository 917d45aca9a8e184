package kind

import (
	"slices"

	"github.com/go-logr/logr"

	"github.com/gardener-extensions/registry-cache/kind/certificate"
	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/engine"
	"github.com/gardener-extensions/registry-cache/kind/gardenlet"
	"github.com/gardener-extensions/registry-cache/kind/upstream"
)

// Parts are what Up has found or made. Its parts are nil until then.
type Parts struct {
	log logr.Logger
	// Planted is the bug that what ships is built with; nil is none.
	Planted *PlantedBug
	engine  *engine.Engine
	// diskUnknown says that the disk could not be checked before the engine ran.
	diskUnknown bool
	nodeImage   string
	ca          *certificate.Authority
	images      images
	seed        *cluster.Cluster
	shoot       *cluster.Cluster
	upstreams   registries
	gardenlet   *gardenlet.Gardenlet
}

// PlantedBug is a bug that Build builds into what ships, see package proof.
type PlantedBug struct {
	Name string
	// Overlay writes the changed sources below folder, and returns the file for go build -overlay.
	Overlay func(root, folder string) (string, error)
}

// Seed is the cluster that acts as Gardener seed; nil before Up.
func (t *Testbed) Seed() *cluster.Cluster { return t.seed }

// Shoot is the cluster that acts as shoot; nil before Up.
func (t *Testbed) Shoot() *cluster.Cluster { return t.shoot }

// Gardenlet drives the shoot; nil before Up.
func (t *Testbed) Gardenlet() *gardenlet.Gardenlet { return t.gardenlet }

// Upstream is the registry with this host name, one of upstream.Hosts; nil for another name and before Up.
func (t *Testbed) Upstream(host string) *upstream.Registry { return t.upstreams.get(host) }

// Nodes are those of both clusters.
func (t *Testbed) Nodes() []*cluster.Node { return slices.Concat(t.seed.Nodes(), t.shoot.Nodes()) }
