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

// Parts are what Up or Attach found or created. Each is nil until then.
type Parts struct {
	// Log is the log of Gardener's components, see State.OpenLog.
	Log logr.Logger
	// Planted is the bug that Build compiles into the shipped binaries, or nil.
	Planted *PlantedBug
	// Engine is the Docker Engine that the testbed runs on.
	Engine *engine.Engine
	// NodeImage is the reference of the node image in use. Only Up sets it.
	NodeImage string
	// CA signs the certificates of the upstreams. The nodes trust it.
	CA *certificate.CA
	// Images are the images of Binaries. Up sets all of them, AttachGardenlet those of Gardener.
	Images image.Set
	// Seed and Shoot are the clusters.
	Seed, Shoot *cluster.Cluster
	// Upstreams are the known upstream registries.
	Upstreams upstream.Registries
	// Gardenlet runs gardenlet's flows for the Shoot.
	Gardenlet *gardenlet.Gardenlet
}

// Upstream returns the registry with this host name, or nil if it is not known.
func (t *Testbed) Upstream(host string) *upstream.Registry { return t.Upstreams.Get(host) }

// Nodes returns the nodes of both clusters.
func (t *Testbed) Nodes() []*cluster.Node { return slices.Concat(t.Seed.Nodes(), t.Shoot.Nodes()) }
