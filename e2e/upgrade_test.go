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
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	"github.com/gardener/gardener/pkg/utils/managedresources"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/cachetest"
	"github.com/gardener-extensions/registry-cache/e2e/rig"
	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

// previousVersion contains files of the previous version of this extension: its chart, the objects
// that it deployed into a shoot for alpha, and the script and the unit that it wrote to nodes. Each
// argument of the unit has three fields. The unit exits once it has written hosts.toml. The
// previous version's images are not published, so its chart runs no replica, and its cache runs the
// current image. Without the prefix all:, _helpers.tpl would be left out.
//
//go:embed all:testdata/upgrade
var previousVersion embed.FS

const (
	previousChart  = "testdata/upgrade/chart"
	previousFile   = "testdata/upgrade/alpha.yaml"
	previousScript = "testdata/upgrade/script"
	previousUnit   = "testdata/upgrade/unit"

	previousImage = "registry.example/registry-cache:v1"
)

// upgrade proves that the chart of this version can be installed over the previous one while nodes
// pull through a cache. The next reconciliation keeps the volume, so that the first pull is a hit,
// and replaces the script and the unit on the nodes. Then it proves the way back, with the steps of
// docs/operations.md: the previous version's objects keep the volume, and its script takes over the
// nodes. No container of the previous version runs.
func upgrade() rig.Scenario {
	u := &upgraded{}
	return rig.New("upgrade", slices.Concat(u.forward(), u.back())...)
}

// upgraded is what the steps of an upgrade compare.
type upgraded struct {
	current   *appsv1.Deployment
	installed bool   // whether the chart of this version is installed
	before    string // the Service and the volume
	mirror    string // the hosts.toml that the previous version's script writes
	img       rig.Pushed
}

func (u *upgraded) forward() []rig.Step {
	return []rig.Step{
		rig.Prove("the previous version's chart and its cache for alpha are deployed", func(ctx context.Context, p *rig.Run) {
			p.Check(rig.UndoLeftovers(ctx, p))
			p.Reconcile(ctx)
			p.AwaitCaches(ctx)
			u.current = deploymentOfExtension(ctx, p)
			p.Afterwards(ctx, func(ctx context.Context) error {
				if u.installed {
					return nil
				}
				return cachetest.UseImage(ctx, p.Session.Testbed, cachetest.Image(p.Session.Testbed))
			})
			installPrevious(ctx, p, u.current)
			deployPrevious(ctx, p)
			p.AwaitCaches(ctx, rig.Alpha)
			createPreviousExtension(ctx, p)
			writePreviousStatus(ctx, p)
			u.before = withoutKinds(p.Identities(ctx, p.Session.Shoot), "Pod ", "StatefulSet ")
		}),

		rig.Prove("the previous version's script has configured the nodes, and a node has pulled", func(ctx context.Context, p *rig.Run) {
			endpoint := p.Endpoints(ctx)[rig.Alpha]
			for _, worker := range p.Workers() {
				writePrevious(ctx, p, worker, endpoint)
			}
			p.AwaitMirrors(ctx, rig.Alpha)
			awaitUnits(ctx, p, "exited")
			u.mirror = p.Hosts(ctx, p.Worker(0), rig.Alpha)
			u.img = p.Push(ctx, rig.Alpha)
			p.TimedPull(ctx, p.Worker(1), u.img)
			p.FetchedOnce(ctx, u.img, accesslog.AskerCache)
		}),

		rig.Prove("the chart of this version is installed, and pulls still go through the cache", func(ctx context.Context, p *rig.Run) {
			untouched, pulls := p.Identities(ctx, p.Session.Shoot), pullContinuously(ctx, p, rig.Alpha)
			p.Check(cachetest.UseImage(ctx, p.Session.Testbed, cachetest.Image(p.Session.Testbed)))
			u.installed = true
			if now := deploymentOfExtension(ctx, p); now.UID != u.current.UID || !sameProgram(now, u.current) {
				p.Fatalf("the Deployment of the extension was recreated, or is not that of this version: %v", now.Spec.Template.Spec.Containers[0].Args)
			}
			awaitLeader(ctx, p, u.current)
			pulls.end(p, rig.Alpha, rig.MaxPull)
			for _, img := range pulls.images {
				p.FetchedOnce(ctx, img, accesslog.AskerCache)
			}
			p.Unchanged(ctx, p.Session.Shoot, untouched)
			p.Evidence("chart of this version over the previous one: same Deployment, same caches")
		}),

		rig.Prove("this version adopts the cache", func(ctx context.Context, p *rig.Run) {
			p.Reconcile(ctx, rig.Alpha)
			p.AwaitCaches(ctx, rig.Alpha)
			p.AwaitMirrors(ctx, rig.Alpha)
			awaitUnits(ctx, p, "running")

			u.sameVolume(ctx, p)
			p.Evidence("same Service and volume, script and unit replaced on %d workers", len(p.Workers()))
		}),

		rig.Prove("the first pull is a hit", func(ctx context.Context, p *rig.Run) {
			p.TimedPull(ctx, p.Worker(0), u.img)
			p.Evidence("first pull: %s", p.FetchedOnce(ctx, u.img, accesslog.AskerCache))
			if p.Hosts(ctx, p.Worker(0), rig.Alpha) == u.mirror {
				p.Fatalf("both versions write the same hosts.toml: the way back needs another proof\n%s", u.mirror)
			}
		}),
	}
}

func (u *upgraded) back() []rig.Step {
	return []rig.Step{
		rig.Prove("the previous version is rolled back to, and keeps the volume", func(ctx context.Context, p *rig.Run) {
			pulls := pullContinuously(ctx, p, rig.Alpha)
			u.installed = false
			installPrevious(ctx, p, u.current)
			untouched := p.Identities(ctx, p.Session.Shoot)
			releaseCaches(ctx, p)
			p.Unchanged(ctx, p.Session.Shoot, untouched)
			deployPrevious(ctx, p)
			p.AwaitCaches(ctx, rig.Alpha)
			writePreviousStatus(ctx, p)
			u.sameVolume(ctx, p)
			pulls.end(p, rig.Alpha, rig.MaxPull)
		}).InFullLane(),

		rig.Prove("the previous version's script takes over the nodes, which pull what is cached", func(ctx context.Context, p *rig.Run) {
			endpoint := p.Endpoints(ctx)[rig.Alpha]
			for _, worker := range p.Workers() {
				writePrevious(ctx, p, worker, endpoint)
			}
			awaitUnits(ctx, p, "exited")
			p.Await(ctx, "every worker has the previous version's hosts.toml", rig.AppliedTimeout, func(ctx context.Context) (bool, string, error) {
				for _, worker := range p.Workers() {
					if now := p.Hosts(ctx, worker, rig.Alpha); now != u.mirror {
						return false, worker.Name() + ": " + now, nil
					}
				}
				return true, "", nil
			})
			p.AwaitMirrors(ctx, rig.Alpha)
			p.TimedPull(ctx, p.Worker(1), u.img)
			fresh := p.Push(ctx, rig.Alpha)
			p.TimedPull(ctx, p.Worker(0), fresh)
			p.Evidence("rolled back: cached image %s; new image %s",
				p.FetchedOnce(ctx, u.img, accesslog.AskerCache), p.FetchedOnce(ctx, fresh, accesslog.AskerCache))
		}).InFullLane(),

		rig.Prove("this version adopts the cache again, and removes what the previous one left", func(ctx context.Context, p *rig.Run) {
			p.Check(cachetest.UseImage(ctx, p.Session.Testbed, cachetest.Image(p.Session.Testbed)))
			u.installed = true
			p.Reconcile(ctx, rig.Alpha)
			p.AwaitCaches(ctx, rig.Alpha)
			u.sameVolume(ctx, p)
			p.Reconcile(ctx)
			p.AwaitCaches(ctx)
			p.AwaitMirrors(ctx)
		}).InFullLane(),
	}
}

// sameVolume fails the scenario if the volume or the Service of the cache was recreated.
func (u *upgraded) sameVolume(ctx context.Context, p *rig.Run) {
	p.Helper()
	if after := withoutKinds(p.Identities(ctx, p.Session.Shoot), "Pod ", "StatefulSet "); after != u.before {
		p.Fatalf("the volume or the Service was recreated:\nbefore:\n%s\nafter:\n%s", u.before, after)
	}
}

// releaseCaches deletes this version's ManagedResources, but keeps the objects in the shoot. The
// previous version knows only one of the ManagedResources. If it changed that one instead of
// creating it, gardener-resource-manager would drop the annotation that lets it replace the
// StatefulSet, whose serviceName is immutable.
func releaseCaches(ctx context.Context, p *rig.Run) {
	p.Helper()
	for _, name := range []string{v1alpha3.ManagedResourceCaches, v1alpha3.ManagedResourceServices} {
		p.Check(managedresources.SetKeepObjects(ctx, p.Session.Seed, rig.ShootNamespace, name, true))
	}
	for _, name := range []string{v1alpha3.ManagedResourceCaches, v1alpha3.ManagedResourceServices, monitoringResource} {
		resource := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: rig.ShootNamespace, Name: name}}
		p.Check(client.IgnoreNotFound(p.Session.Seed.Delete(ctx, resource)))
		p.Await(ctx, "ManagedResource "+name+" is gone", time.Minute, func(ctx context.Context) (bool, string, error) {
			err := p.Session.Seed.Get(ctx, client.ObjectKeyFromObject(resource), resource)
			return apierrors.IsNotFound(err), fmt.Sprint(resource.Status.Conditions), client.IgnoreNotFound(err)
		})
	}
}

// installPrevious installs the previous version's chart, without a replica, over the current one.
func installPrevious(ctx context.Context, p *rig.Run, current *appsv1.Deployment) {
	p.Helper()
	chart, err := fs.Sub(previousVersion, previousChart)
	p.Check(err)
	stopExtension(ctx, p)
	p.Check(cachetest.InstallStopped(ctx, p.Session.Testbed, chart))
	old := deploymentOfExtension(ctx, p)
	if *old.Spec.Replicas != 0 {
		p.Fatalf("the Deployment of the previous version has %d replicas, want none", *old.Spec.Replicas)
	}
	if sameProgram(old, current) {
		p.Fatalf("both versions give the extension the arguments %v: compare something else that differs from %s", old.Spec.Template.Spec.Containers[0].Args, previousChart)
	}
}

// sameProgram reports whether both Deployments run the extension with the same arguments.
func sameProgram(a, b *appsv1.Deployment) bool {
	return slices.Equal(a.Spec.Template.Spec.Containers[0].Args, b.Spec.Template.Spec.Containers[0].Args)
}

// deployPrevious writes the ManagedResource of the previous version.
func deployPrevious(ctx context.Context, p *rig.Run) {
	p.Helper()
	text := readPrevious(p, previousFile)
	if !strings.Contains(text, previousImage) {
		p.Fatalf("%s does not name the image %s", previousFile, previousImage)
	}
	text = strings.ReplaceAll(text, previousImage, cachetest.Image(p.Session.Testbed).Ref)
	name, secret := managedresources.NewSecret(p.Session.Seed, rig.ShootNamespace, v1alpha3.ManagedResourceCaches, map[string][]byte{"alpha.yaml": []byte(text)}, true)
	p.Check(secret.Reconcile(ctx))
	p.Check(managedresources.NewForShoot(p.Session.Seed, rig.ShootNamespace, v1alpha3.ManagedResourceCaches, "registry-cache", false).
		WithSecretRef(name).DeletePersistentVolumeClaims(true).Reconcile(ctx))
}

// createPreviousExtension creates the Extension of a shoot with a cache for alpha.
func createPreviousExtension(ctx context.Context, p *rig.Run) {
	p.Helper()
	shoot, err := cachetest.Shoot(rig.Alpha)
	p.Check(err)
	extension := &extensionsv1alpha1.Extension{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: rig.ShootNamespace, Name: v1alpha3.ExtensionType, Finalizers: []string{extensionFinalizer},
		},
		Spec: extensionsv1alpha1.ExtensionSpec{DefaultSpec: extensionsv1alpha1.DefaultSpec{
			Type: v1alpha3.ExtensionType, ProviderConfig: shoot.Spec.Extensions[0].ProviderConfig,
		}},
	}
	p.Check(p.Session.Seed.Create(ctx, extension))
}

// writePreviousStatus writes the status of the Extension as the previous version does. It keeps the
// state, which the previous version does not know.
func writePreviousStatus(ctx context.Context, p *rig.Run) {
	p.Helper()
	extension, service := p.Extension(ctx), p.Services(ctx)[rig.Alpha]
	patch := client.MergeFrom(extension.DeepCopy())
	extension.Status.ObservedGeneration = extension.Generation
	extension.Status.LastOperation = &gardencorev1beta1.LastOperation{
		Type: gardencorev1beta1.LastOperationTypeCreate, State: gardencorev1beta1.LastOperationStateSucceeded, Progress: 100,
		Description: "Successfully reconciled Extension", LastUpdateTime: metav1.NewTime(time.Now().UTC()),
	}
	extension.Status.ProviderStatus = &runtime.RawExtension{Raw: fmt.Appendf(nil,
		`{"apiVersion":"registry.extensions.gardener.cloud/v1alpha3","kind":"RegistryStatus","caches":[`+
			`{"upstream":%q,"endpoint":"http://%s:5000","remoteURL":%q}]}`, rig.Alpha, service.Spec.ClusterIP, "http://"+rig.Alpha)}
	p.Check(p.Session.Seed.Status().Patch(ctx, extension, patch))
}

// writePrevious writes the script and the unit of the previous version to a node and starts the
// unit, as gardener-node-agent would.
func writePrevious(ctx context.Context, p *rig.Run, worker *cluster.Node, endpoint string) {
	p.Helper()
	command := fmt.Sprintf(`%[1]s "%[2]s,%[3]s,http://%[2]s"`, nodeconfig.ScriptPath, rig.Alpha, endpoint)
	unit := strings.Replace(readPrevious(p, previousUnit), "{{ .CommandLine }}", command, 1)
	p.Check(worker.WriteFile(ctx, nodeconfig.ScriptPath, 0o744, []byte(readPrevious(p, previousScript))))
	p.Check(worker.WriteFile(ctx, nodeconfig.UnitPath, 0o600, []byte(unit)))
	_, err := worker.Script(ctx, `systemctl daemon-reload && systemctl enable "$1" && systemctl restart "$1"`, nodeconfig.UnitName)
	p.Check(err)
}

// awaitUnits waits until the unit is in this SubState on every worker.
func awaitUnits(ctx context.Context, p *rig.Run, want string) {
	p.Helper()
	p.Await(ctx, fmt.Sprintf("%s is %s on every worker", nodeconfig.UnitName, want), rig.AppliedTimeout, func(ctx context.Context) (bool, string, error) {
		for _, worker := range p.Workers() {
			if state := p.Systemd(ctx, worker, "SubState"); state != want {
				return false, fmt.Sprintf("the unit is %s on %s", state, worker.Name()), nil
			}
		}
		return true, "", nil
	})
}

func readPrevious(p *rig.Run, file string) string {
	p.Helper()
	content, err := fs.ReadFile(previousVersion, file)
	p.Check(err)
	return string(content)
}

// awaitLeader waits until a pod of the Deployment holds the leader election lease.
func awaitLeader(ctx context.Context, p *rig.Run, deployment *appsv1.Deployment) {
	p.Helper()
	p.Await(ctx, "a pod of the extension is the leader", time.Minute, func(ctx context.Context) (bool, string, error) {
		pods, lease := &corev1.PodList{}, &coordinationv1.Lease{}
		if err := p.Session.Seed.Get(ctx, leaderLease(deployment.Namespace), lease); err != nil {
			return false, "", err
		}
		err := p.Session.Seed.List(ctx, pods, client.InNamespace(deployment.Namespace), client.MatchingLabels(deployment.Spec.Selector.MatchLabels))
		leader, _, _ := strings.Cut(ptr.Deref(lease.Spec.HolderIdentity, ""), "_")
		leads := slices.ContainsFunc(pods.Items, func(pod corev1.Pod) bool { return pod.Name == leader && pod.DeletionTimestamp == nil })
		return leads, fmt.Sprintf("%q has the lease", leader), err
	})
}

// deploymentOfExtension returns the only Deployment in the extension's namespace of the seed.
func deploymentOfExtension(ctx context.Context, p *rig.Run) *appsv1.Deployment {
	p.Helper()
	deployments, namespace := &appsv1.DeploymentList{}, p.ExtensionNamespace(ctx)
	p.Check(p.Session.Seed.List(ctx, deployments, client.InNamespace(namespace)))
	if len(deployments.Items) != 1 {
		p.Fatalf("there are %d Deployments in %s, want the extension's", len(deployments.Items), namespace)
	}
	return &deployments.Items[0]
}

// withoutKinds returns the identities without the lines of these kinds.
func withoutKinds(identities string, kinds ...string) string {
	lines := strings.Split(identities, "\n")
	return strings.Join(slices.DeleteFunc(lines, func(line string) bool {
		return slices.ContainsFunc(kinds, func(kind string) bool { return strings.HasPrefix(line, kind) })
	}), "\n")
}
