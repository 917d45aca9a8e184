//go:build e2e

package nodeless

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"

	"github.com/gardener/gardener/pkg/client/kubernetes"
	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/gardener-extensions/registry-cache/bench"
	"github.com/gardener-extensions/registry-cache/bench/extension"
	"github.com/gardener-extensions/registry-cache/e2e/rig"
	"github.com/gardener-extensions/registry-cache/kind/gardener"
	"github.com/gardener-extensions/registry-cache/kind/osextension"
)

// environment contains a seed with the extension, and the clusters of shoots.
type environment struct {
	folder   string      // for logs and kubeconfigs
	log      logr.Logger // of gardenlet's flows and of the libraries in this process
	programs programs
	seed     *cluster
	// seedAccess and seedClientSet are clients of the seed that know the resource types of a seed.
	seedAccess    rig.Access
	seedClientSet kubernetes.Interface
	// free contains the clusters that no shoot uses. The seed's cluster can serve as a shoot as well.
	free chan *cluster
	// seedLost is true once a shoot in the seed's cluster could not be removed.
	seedLost atomic.Bool
	// stop contains the functions that stop the started programs and goroutines, in the order of the
	// starts.
	stop []func() error
}

// cluster is an API server with its controllers, and the clients that a session needs to use it as
// a shoot.
type cluster struct {
	name       string
	control    *bench.ControlPlane
	kubeconfig []byte // of an administrator
	access     rig.Access
	clientSet  kubernetes.Interface
}

// controllers are the controllers of kube-controller-manager that the scenarios need.
const controllers = "namespace-controller,statefulset-controller,daemonset-controller," +
	"garbage-collector-controller,persistentvolumeclaim-protection-controller"

// start starts the seed, the extension and the clusters. The caller must call close, even after an
// error. The started programs and goroutines end with the context. If one ends earlier, fail is
// called.
func (e *environment) start(ctx context.Context, fail func(error)) error {
	if err := os.MkdirAll(e.folder, 0o755); err != nil {
		return fmt.Errorf("create the folder for logs: %w", err)
	}
	file, err := os.Create(filepath.Join(e.folder, "gardenlet.log"))
	if err != nil {
		return fmt.Errorf("create the log of gardenlet: %w", err)
	}
	e.stop = append(e.stop, file.Close)
	e.log = logr.FromSlogHandler(slog.NewTextHandler(file, nil))
	log.SetLogger(e.log)
	klog.SetLogger(e.log)
	clusters := []*cluster{{name: "seed"}, {name: "shoot"}}
	var group errgroup.Group
	for _, c := range clusters {
		group.Go(func() error { return c.start(e.programs, filepath.Join(e.folder, c.name)) })
	}
	err = group.Wait()
	for _, c := range clusters {
		if c.control != nil {
			e.stop = append(e.stop, c.control.Stop)
		}
	}
	if err != nil {
		return err
	}
	e.seed, e.free = clusters[0], make(chan *cluster, len(clusters))
	for _, c := range slices.Backward(clusters) { // the first scenario takes the shoot's cluster
		if err := e.startControllers(ctx, c); err != nil {
			return err
		}
		e.free <- c
	}
	return e.startSeed(ctx, fail)
}

func (c *cluster) start(programs programs, folder string) error {
	var err error
	if c.control, err = bench.StartControlPlane(programs, folder, extension.User); err != nil {
		return fmt.Errorf("cluster %s: %w", c.name, err)
	}
	if c.kubeconfig, err = c.control.Kubeconfig("nodeless", "system:masters"); err != nil {
		return err
	}
	if c.access, err = rig.Connect(c.control.Admin(), kubernetes.ShootScheme); err != nil {
		return err
	}
	c.clientSet, err = gardener.NewShootClient(c.control.Admin())
	return err
}

func (e *environment) startControllers(ctx context.Context, c *cluster) error {
	folder := filepath.Join(e.folder, c.name)
	kubeconfig := filepath.Join(folder, "admin.kubeconfig")
	if err := os.WriteFile(kubeconfig, c.kubeconfig, 0o600); err != nil {
		return fmt.Errorf("write the kubeconfig of kube-controller-manager: %w", err)
	}
	ports, err := bench.FreePorts(1)
	if err != nil {
		return err
	}
	process, err := bench.Program{
		Name: controllerManager, Path: e.programs[controllerManager], Folder: folder,
		Arguments: []string{
			"--kubeconfig=" + kubeconfig, "--controllers=" + controllers, "--leader-elect=false",
			"--bind-address=127.0.0.1", "--secure-port=" + ports[0], "--cert-dir=" + folder, "--authentication-skip-lookup",
		},
	}.Start(ctx)
	if err != nil {
		return err
	}
	e.stop = append(e.stop, process.Stop)
	return gardener.InstallPriorityClasses(ctx, c.access)
}

// startSeed starts the programs that run in pods of the seed on a testbed.
func (e *environment) startSeed(ctx context.Context, fail func(error)) error {
	var err error
	if e.seedAccess, err = rig.Connect(e.seed.control.Admin(), kubernetes.SeedScheme); err != nil {
		return err
	}
	if e.seedClientSet, err = gardener.NewSeedClient(e.seed.control.Admin()); err != nil {
		return err
	}
	arguments, err := extension.Prepare(ctx, e.seedAccess)
	if err != nil {
		return err
	}
	if err := gardener.EnsureGardenNamespace(ctx, e.seedAccess); err != nil {
		return err
	}
	resourceManagers, err := watchDeployments(ctx, e, fail)
	if err != nil {
		return err
	}
	e.stop = append(e.stop, resourceManagers.stop)
	if err := gardener.SeedResourceManager(resourceManagerName).Deploy(ctx, e.seedAccess); err != nil {
		return err
	}
	go func() { fail(osextension.Run(ctx, e.seed.control.Admin(), "0")) }()

	kubeconfig, err := e.seed.control.Kubeconfig(extension.User, extension.Groups...)
	if err != nil {
		return err
	}
	process, err := extension.Start(ctx, e.programs[extensionName], e.folder, kubeconfig, append(arguments, "--health-check-period=1s"))
	if err != nil {
		return err
	}
	e.stop = append(e.stop, process.Stop)
	return gardener.SeedResourceManager(resourceManagerName).Wait(ctx, e.seedAccess)
}

// close stops all processes.
func (e *environment) close() error {
	var err error
	for _, stop := range slices.Backward(e.stop) {
		err = errors.Join(err, stop())
	}
	return err
}
