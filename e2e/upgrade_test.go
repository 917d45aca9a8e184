//go:build e2e

package e2e

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"github.com/gardener/gardener/pkg/utils/managedresources"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/e2e-framework/pkg/features"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

// previous holds the chart of the version before this one, what that version deployed into a shoot for alpha, as it was rendered
// then, and the script and the unit that it laid down on nodes (arguments of three fields; the unit ends as soon as hosts.toml is
// written). Its images stand for any: the chart runs no replica, and the cache the image of this version, because no registry
// keeps old ones. With all:, because the name of a chart's _helpers.tpl begins with _.
//
//go:embed all:testdata/upgrade
var previous embed.FS

const (
	previousChart  = "testdata/upgrade/chart"
	previousFile   = "testdata/upgrade/alpha.yaml"
	previousScript = "testdata/upgrade/script"
	previousUnit   = "testdata/upgrade/unit"

	previousImage = "registry.example/registry-cache:v1"
)

// upgrade proves that the chart of this version can be installed over the one before while nodes pull through a cache of that
// version, and that this version takes over such a cache with its data at the next reconciliation, and the nodes that pull from it:
// no volume is lost, and the first pull afterwards is a hit. No process of the version before runs.
func upgrade() features.Feature {
	var (
		current   *appsv1.Deployment
		installed bool
		before    string
		img       pushed
	)
	return scenario("upgrade",
		step{"the version before has left its chart, and a cache for alpha, with data", func(ctx context.Context, p *proof) {
			p.Check(undoLeftovers(ctx))
			p.Reconcile(ctx)
			p.AwaitCaches(ctx)
			current = deploymentOfExtension(ctx, p)
			p.Afterwards(ctx, func(ctx context.Context) error {
				if installed {
					return nil
				}
				return suite.testbed.UseCacheImage(ctx, suite.testbed.CacheImage())
			})
			p.InstallPrevious(ctx, current)
			p.DeployPrevious(ctx)
			p.AwaitCaches(ctx, alpha)
			service := p.Services(ctx)[alpha]
			putPreviousExtension(ctx, p, "http://"+service.Spec.ClusterIP+":5000")
			before = claimsAndServices(p.Identities(ctx, suite.shoot))
		}},
		step{"its script has told the nodes, and a node has pulled", func(ctx context.Context, p *proof) {
			endpoint := p.Endpoints(ctx)[alpha]
			for _, worker := range p.Workers() {
				p.LayDownPrevious(ctx, worker, endpoint)
			}
			p.AwaitMirrors(ctx, alpha)
			p.awaitUnits(ctx, "exited")
			img = p.Push(ctx, alpha)
			p.Pull(ctx, p.Worker(1), img)
			p.FetchedOnce(ctx, img, accesslog.AskerCache)
		}},
		step{"the chart of this version is installed, and pulls go on through the cache", func(ctx context.Context, p *proof) {
			untouched, pulls := p.Identities(ctx, suite.shoot), pullContinuously(ctx, p, alpha)
			p.Check(suite.testbed.UseCacheImage(ctx, suite.testbed.CacheImage()))
			installed = true
			if now := deploymentOfExtension(ctx, p); now.UID != current.UID || !sameProgram(now, current) {
				p.Fatalf("the Deployment of the extension was created anew, or is not that of this version: %v", now.Spec.Template.Spec.Containers[0].Args)
			}
			p.awaitLeader(ctx, current)
			pulls.end(p, alpha, maxPull)
			for _, img := range pulls.images {
				p.FetchedOnce(ctx, img, accesslog.AskerCache)
			}
			p.Unchanged(ctx, suite.shoot, untouched)
			p.Evidence("chart of this version over the one before: same Deployment, same caches")
		}},
		step{"this version takes it over", func(ctx context.Context, p *proof) {
			p.Reconcile(ctx, alpha)
			p.AwaitCaches(ctx, alpha)
			p.AwaitMirrors(ctx, alpha)
			p.awaitUnits(ctx, "running") // this version's script stays
			// The StatefulSet may be another one: some of its fields cannot be changed.
			if after := claimsAndServices(p.Identities(ctx, suite.shoot)); after != before {
				p.Fatalf("the volume or the Service was created anew:\nbefore:\n%s\nafter:\n%s", before, after)
			}
			p.Evidence("same Service and volume, script and unit replaced on %d workers", len(p.Workers()))
		}},
		step{"the first pull is a hit", func(ctx context.Context, p *proof) {
			p.Pull(ctx, p.Worker(0), img)
			p.Evidence("first pull: %s", p.FetchedOnce(ctx, img, accesslog.AskerCache))
		}},
	)
}

// InstallPrevious installs the chart of the version before, without a replica, over that of this version, which has made the
// Deployment.
func (p *proof) InstallPrevious(ctx context.Context, current *appsv1.Deployment) {
	p.Helper()
	chart, err := fs.Sub(previous, previousChart)
	p.Check(err)
	p.Check(suite.testbed.InstallStopped(ctx, chart))
	old := deploymentOfExtension(ctx, p)
	if *old.Spec.Replicas != 0 {
		p.Fatalf("the Deployment of the version before has %d replicas, want none", *old.Spec.Replicas)
	}
	if sameProgram(old, current) {
		p.Fatalf("both versions give the extension the arguments %v: with a new %s compare something else", old.Spec.Template.Spec.Containers[0].Args, previousChart)
	}
}

// sameProgram says whether both Deployments run the extension with the same arguments.
func sameProgram(a, b *appsv1.Deployment) bool {
	return slices.Equal(a.Spec.Template.Spec.Containers[0].Args, b.Spec.Template.Spec.Containers[0].Args)
}

// DeployPrevious writes the ManagedResource of the version before.
func (p *proof) DeployPrevious(ctx context.Context) {
	p.Helper()
	text := readPrevious(p, previousFile)
	if !strings.Contains(text, previousImage) {
		p.Fatalf("%s does not name the image %s", previousFile, previousImage)
	}
	text = strings.ReplaceAll(text, previousImage, suite.testbed.CacheImage().Ref)
	name, secret := managedresources.NewSecret(suite.seed, shootNamespace, cachesManagedResource, map[string][]byte{"alpha.yaml": []byte(text)}, true)
	p.Check(secret.Reconcile(ctx))
	p.Check(managedresources.NewForShoot(suite.seed, shootNamespace, cachesManagedResource, extensionName, false).
		WithSecretRef(name).DeletePersistentVolumeClaims(true).Reconcile(ctx))
}

// putPreviousExtension writes the Extension as the version before has left it.
func putPreviousExtension(ctx context.Context, p *proof, endpoint string) {
	p.Helper()
	shoot, err := kind.ShootWithCaches(alpha)
	p.Check(err)
	extension := &extensionsv1alpha1.Extension{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: shootNamespace, Name: extensionName, Finalizers: []string{extensionFinalizer},
		},
		Spec: extensionsv1alpha1.ExtensionSpec{DefaultSpec: extensionsv1alpha1.DefaultSpec{
			Type: extensionName, ProviderConfig: shoot.Spec.Extensions[0].ProviderConfig,
		}},
	}
	p.Check(suite.seed.Create(ctx, extension))
	patch := client.MergeFrom(extension.DeepCopy())
	extension.Status.ObservedGeneration = extension.Generation
	extension.Status.LastOperation = &gardencorev1beta1.LastOperation{
		Type: gardencorev1beta1.LastOperationTypeCreate, State: gardencorev1beta1.LastOperationStateSucceeded, Progress: 100,
		Description: "Successfully reconciled Extension", LastUpdateTime: metav1.NewTime(time.Now().UTC()),
	}
	extension.Status.ProviderStatus = &runtime.RawExtension{Raw: fmt.Appendf(nil,
		`{"apiVersion":"registry.extensions.gardener.cloud/v1alpha3","kind":"RegistryStatus","caches":[`+
			`{"upstream":%q,"endpoint":%q,"remoteURL":%q}]}`, alpha, endpoint, "http://"+alpha)}
	p.Check(suite.seed.Status().Patch(ctx, extension, patch))
}

// LayDownPrevious lays script and unit of the version before down on a node, as gardener-node-agent does, and starts the unit.
func (p *proof) LayDownPrevious(ctx context.Context, worker *cluster.Node, endpoint string) {
	p.Helper()
	command := fmt.Sprintf(`%[1]s "%[2]s,%[3]s,http://%[2]s"`, scriptPath, alpha, endpoint)
	unit := strings.Replace(readPrevious(p, previousUnit), "{{ .CommandLine }}", command, 1)
	p.Check(worker.WriteFile(ctx, scriptPath, 0o744, []byte(readPrevious(p, previousScript))))
	p.Check(worker.WriteFile(ctx, unitPath, 0o600, []byte(unit)))
	_, err := worker.Script(ctx, `systemctl daemon-reload && systemctl enable --now "$1"`, unitName)
	p.Check(err)
}

// awaitUnits waits until the unit is in this SubState on every worker.
func (p *proof) awaitUnits(ctx context.Context, want string) {
	p.Helper()
	p.Await(ctx, fmt.Sprintf("%s is %s on every worker", unitName, want), appliedTimeout, func(ctx context.Context) (bool, string, error) {
		for _, worker := range p.Workers() {
			if state := p.Systemd(ctx, worker, "SubState"); state != want {
				return false, fmt.Sprintf("it is %s on %s", state, worker.Name()), nil
			}
		}
		return true, "", nil
	})
}

func readPrevious(p *proof, file string) string {
	p.Helper()
	content, err := fs.ReadFile(previous, file)
	p.Check(err)
	return string(content)
}
