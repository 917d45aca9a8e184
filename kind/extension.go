package kind

import (
	"context"
	"fmt"
	"io"
	"io/fs"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
	"github.com/gardener-extensions/registry-cache/kind/gardener"
	"github.com/gardener-extensions/registry-cache/kind/image"
)

// Extension describes the extension that a testbed builds and installs. The testbed knows nothing
// else about the extension. Only Name, Registration and Chart are required.
type Extension struct {
	Name         string // its type, and the name of its ControllerInstallation and chart
	Registration func() (*gardencorev1beta1.ControllerRegistration, error)
	// Chart is the folder of the chart. Sources returns the chart in the checkout at root, for the
	// inner loop. If Sources is nil, Chart is used.
	Chart   fs.FS
	Sources func(root string) fs.FS
	Values  func(image.Set) map[string]any // returns the chart's values for the built images
	Images  []ExtensionImage               // built from the sources
	// Webhooks are the MutatingWebhookConfigurations that the extension registers in the seed.
	Webhooks []string
	// Accounts are further namespaces of the seed whose ServiceAccounts are audited.
	Accounts []string
	// Configure returns the providerConfig of the default Shoot, for the upstreams that the testbed's
	// configuration calls cached. If Configure or its result is nil, the Shoot does not enable the
	// extension.
	Configure func(ctx context.Context, upstreams []string) ([]byte, error)
	Await     Wait     // runs after Up has reconciled the Shoot
	Replaced  Wait     // runs after a rollout if the Shoot enables the extension
	Reporter  Reporter // adds to the status
	Targets   Targets  // the parts that faults can break
	// CheckDisk returns a warning if the file system of the volumes, whose size and free space are in
	// bytes, has too little space for the extension, or "".
	CheckDisk func(size, free uint64) string
}

// ExtensionImage is an image of an extension, and where it runs.
type ExtensionImage struct {
	image.Binary
	OnSeed, OnShoot bool
}

// Wait is a step that waits until the extension has done its part.
type Wait struct {
	Name  string
	Until func(context.Context, *Testbed) error
}

// Reporter reads what an extension adds to the status. A nil Report adds nothing.
type Reporter interface {
	// Units returns the systemd units that the extension adds to nodes.
	Units() []string
	// Files returns, by file name, the programs whose output on a node an export contains.
	Files() map[string][]string
	// OfNode reads what the extension did on a node. With an error, the report may be incomplete.
	OfNode(context.Context, *cluster.Node) (Report, error)
	// OfTestbed reads what the extension runs in the clusters. Clusters that do not run are nil.
	OfTestbed(_ context.Context, seed, shoot *cluster.Cluster) Report
}

// Report is a part of the status.
type Report interface {
	// Write prints rows of a table.
	Write(io.Writer)
}

// Targets are the parts of an extension in the shoot that package fault can break. In a spec.Target
// they have the role spec.Cache.
type Targets interface {
	Names(context.Context, *Testbed) ([]string, error)
	Service(_ context.Context, _ *Testbed, name string) (*corev1.Service, error)
	// Prepare returns the injection of a fault that a function of node.sh alone cannot inject.
	Prepare(context.Context, *Testbed, spec.Fault) (Injection, error)
}

// Injection applies and ends one fault.
type Injection interface {
	// Inject applies the fault, which ends after its duration unless only a command can end it.
	Inject(ctx context.Context) error
	// Clear ends the fault. It also works if Inject failed or never ran, or if the fault has ended.
	Clear(ctx context.Context) error
}

// Namespace returns the namespace of the seed in which the extension runs without a garden.
func (e Extension) Namespace() string { return gardener.Extension{Name: e.Name}.Namespace() }

// InstalledExtension returns the extension as it is installed in the seed. In a testbed with a
// garden, gardener-controller-manager has generated the name of its ControllerInstallation. It is
// an error if the extension is not installed there.
func (t *Testbed) InstalledExtension(ctx context.Context) (gardener.Extension, error) {
	extension, err := t.Extension.Installation(nil, nil)
	if err != nil || !t.Config.Garden {
		return extension, err
	}
	seed, err := gardener.NewSeedClient(t.Seed.RESTConfig())
	if err != nil {
		return extension, fmt.Errorf("connect to the seed: %w", err)
	}
	installed, err := extension.Installed(ctx, seed.Client())
	if err == nil && installed == nil {
		err = fmt.Errorf("extension %s is not installed: no Shoot in the garden needs it", extension.Name)
	}
	return ptr.Deref(installed, extension), err
}

// ExtensionNamespace returns the namespace of the InstalledExtension.
func (t *Testbed) ExtensionNamespace(ctx context.Context) (string, error) {
	installed, err := t.InstalledExtension(ctx)
	return installed.Namespace(), err
}

// Installation returns what gardenlet installs into the seed.
func (e Extension) Installation(chart fs.FS, values map[string]any) (gardener.Extension, error) {
	registration, err := e.Registration()
	return gardener.Extension{Name: e.Name, Registration: registration, Chart: chart, Values: values, Webhooks: e.Webhooks}, err
}

// ChartOf returns the chart in the checkout at root, or Chart if Sources is nil.
func (e Extension) ChartOf(root string) fs.FS {
	if e.Sources == nil {
		return e.Chart
	}
	return e.Sources(root)
}

// ImageNames returns the names of the images for which the function where returns true.
func (e Extension) ImageNames(where func(ExtensionImage) bool) []string {
	var names []string
	for _, built := range e.Images {
		if where(built) {
			names = append(names, built.Name)
		}
	}
	return names
}

// AllImages returns the names of all images.
func (e Extension) AllImages() []string {
	return e.ImageNames(func(ExtensionImage) bool { return true })
}
