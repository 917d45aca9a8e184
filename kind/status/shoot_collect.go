package status

import (
	"context"
	"fmt"

	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/gardener"
	"github.com/gardener-extensions/registry-cache/kind/gardenlet"
	"github.com/gardener-extensions/registry-cache/kind/progress"
	"github.com/gardener-extensions/registry-cache/kind/readiness"
	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

// shootUnits are the systemd units between the API server and a pull.
var shootUnits = []string{nodeconfig.UnitName, kind.GardenerNodeAgentUnit, kind.ContainerdUnit, kind.KubeletUnit}

// ShootStatus connects to the testbed, unless that is done, and looks at its shoot; it changes nothing and takes no lock. It fails
// without a testbed; what does not answer is named in the status.
func OfShoot(ctx context.Context, t *kind.Testbed) (*Shoot, error) {
	ctx, cancel := progress.Within(ctx, statusTimeout, "no status of the shoot")
	defer cancel()
	if t.Seed == nil || t.Shoot == nil {
		if err := t.Attach(ctx); err != nil {
			return nil, err
		}
	}
	status := NewShootStatus()
	if err := status.addSeed(ctx, t.Seed, t.State.Garden()); err != nil {
		status.Problems = append(status.Problems, seedProblem+FirstLine(err))
	}
	if err := status.addNodes(ctx, t.Shoot); err != nil {
		status.Problems = append(status.Problems, "shoot: "+FirstLine(err))
	}
	return status, nil
}

// newShootStatus returns a status in which nothing is found yet: lists are empty, in JSON too.
func NewShootStatus() *Shoot {
	return &Shoot{
		Name: gardenlet.DefaultShoot, Namespace: gardenlet.Namespace(gardenlet.DefaultShoot),
		Extensions: []Extension{}, OperatingSystemConfigs: []OperatingSystemConfig{}, Nodes: []ShootNode{},
	}
}

// addSeed adds what the seed and the garden have of the shoot.
func (s *Shoot) addSeed(ctx context.Context, seed *cluster.Cluster, gardenPath string) error {
	clientSet, err := gardener.NewSeedClient(seed.RESTConfig())
	if err != nil {
		return err
	}
	garden, err := gardener.OpenGarden(gardenPath)
	if err != nil {
		return err
	}
	api := clientSet.Client()
	shoot, stage, err := (&gardenlet.Gardenlet{Name: s.Name, Seed: clientSet, Garden: garden}).Find(ctx)
	if err != nil {
		return err
	}
	s.SetShoot(shoot, stage)

	extensions := &extensionsv1alpha1.ExtensionList{}
	if err := api.List(ctx, extensions, client.InNamespace(s.Namespace)); err != nil {
		return fmt.Errorf("list the extensions: %w", err)
	}
	for i := range extensions.Items {
		s.Extensions = append(s.Extensions, extensionStatusOf(&extensions.Items[i]))
	}
	configs := &extensionsv1alpha1.OperatingSystemConfigList{}
	if err := api.List(ctx, configs, client.InNamespace(s.Namespace)); err != nil {
		return fmt.Errorf("list the operating system configs: %w", err)
	}
	for i := range configs.Items {
		s.OperatingSystemConfigs = append(s.OperatingSystemConfigs, configStatusOf(&configs.Items[i]))
	}
	return nil
}

// addNodes adds the machines of the shoot, which are there also while it sleeps.
func (s *Shoot) addNodes(ctx context.Context, shoot *cluster.Cluster) error {
	nodes := shoot.Nodes()
	s.Nodes = make([]ShootNode, len(nodes))
	group, gctx := errgroup.WithContext(ctx)
	for i, node := range nodes {
		s.Nodes[i] = ShootNode{Name: node.Name()}
		group.Go(func() error {
			s.Nodes[i].look(gctx, node)
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	api, err := client.New(shoot.RESTConfig(), client.Options{})
	if err != nil {
		return err
	}
	objects := &corev1.NodeList{}
	if err := api.List(ctx, objects); err != nil {
		return fmt.Errorf("list the nodes: %w", err)
	}
	for i := range s.Nodes {
		for _, object := range objects.Items {
			if object.Name == s.Nodes[i].Name {
				s.Nodes[i].Registered = true
				s.Nodes[i].Ready, _ = readiness.Node(&object)
			}
		}
	}
	return nil
}

// look reads units and hosts.toml files on the node.
func (s *ShootNode) look(ctx context.Context, node *cluster.Node) {
	argv := append([]string{"systemctl", "show", "--property=" + unitProperties}, shootUnits...)
	text, err := node.Exec(ctx, argv...)
	if err != nil {
		s.Problem = FirstLine(err)
		return
	}
	s.Units = parseUnits(text)
	if s.Mirrors, err = mirrors(ctx, node); err != nil {
		s.Problem = FirstLine(err)
	}
}
