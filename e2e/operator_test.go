//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	certv1alpha1 "github.com/gardener/cert-management/pkg/apis/cert/v1alpha1"
	"github.com/gardener/gardener/pkg/api/indexer"
	operatorconfigv1alpha1 "github.com/gardener/gardener/pkg/apis/config/operator/v1alpha1"
	resourcemanagerconfigv1alpha1 "github.com/gardener/gardener/pkg/apis/config/resourcemanager/v1alpha1"
	gardencorev1 "github.com/gardener/gardener/pkg/apis/core/v1"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	operatorv1alpha1 "github.com/gardener/gardener/pkg/apis/operator/v1alpha1"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	fakeclientmap "github.com/gardener/gardener/pkg/client/kubernetes/clientmap/fake"
	"github.com/gardener/gardener/pkg/client/kubernetes/clientmap/keys"
	"github.com/gardener/gardener/pkg/component"
	"github.com/gardener/gardener/pkg/component/crddeployer"
	"github.com/gardener/gardener/pkg/controller/tokenrequestor"
	"github.com/gardener/gardener/pkg/operator/controller/extension/care"
	"github.com/gardener/gardener/pkg/operator/controller/extension/extension"
	requiredruntime "github.com/gardener/gardener/pkg/operator/controller/extension/required/runtime"
	requiredvirtual "github.com/gardener/gardener/pkg/operator/controller/extension/required/virtual"
	"github.com/gardener/gardener/pkg/resourcemanager/controller/health"
	"github.com/gardener/gardener/pkg/resourcemanager/controller/managedresource"
	resourcemanagerpredicate "github.com/gardener/gardener/pkg/resourcemanager/predicate"
	gardenerutils "github.com/gardener/gardener/pkg/utils/gardener"
	kubernetesutils "github.com/gardener/gardener/pkg/utils/kubernetes"
	"github.com/gardener/gardener/pkg/utils/oci"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientcmdlatest "k8s.io/client-go/tools/clientcmd/api/latest"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/e2e/rig"
	"github.com/gardener-extensions/registry-cache/kind/command"
	"github.com/gardener-extensions/registry-cache/kind/gardener"
	"github.com/gardener-extensions/registry-cache/kind/upstream"
)

// operator runs gardener-operator's own controllers for Extensions in this process. The seed is the
// runtime cluster, and its API server, which serves Gardener's API, stands for the virtual garden.
// There is no gardener-resource-manager for the virtual garden, so its own controllers run in this
// process as well. The Garden is only an object: nothing reconciles it. gardener-operator's
// webhooks do not run.
type operator struct {
	rig.Access // to the runtime cluster
	running    *rig.Background
}

const (
	genericKubeconfig = "generic-token-kubeconfig"
	// checkPeriod is how often controllers check what they do not watch. In a landscape, it is a
	// minute.
	checkPeriod = 5 * time.Second
)

// startOperator starts the controllers, which pull charts from the registry. After the scenario,
// the Extension is removed, the controllers end, and everything but the CRDs is removed.
func startOperator(ctx context.Context, p *rig.Run, registry *upstream.Registry) *operator {
	p.Helper()
	scheme := runtime.NewScheme()
	p.Check(errors.Join(kubernetes.AddSeedSchemeToScheme(scheme), kubernetes.AddGardenSchemeToScheme(scheme), certv1alpha1.AddToScheme(scheme)))
	access, err := rig.Connect(p.Session.Seed.Config, scheme)
	p.Check(err)
	o := &operator{Access: access}
	p.Check(o.installDefinitions(ctx, p.Session.Testbed.Root))
	garden := newGarden()
	objects, err := o.prerequisites(garden)
	p.Check(err)
	cleanUp(ctx, p, func(ctx context.Context) error { return o.remove(ctx, objects...) })
	for _, object := range objects {
		p.Check(client.IgnoreAlreadyExists(o.Create(ctx, object)))
	}
	p.Check(o.succeed(ctx, garden))
	mgr, err := o.manager(ctx, p, garden, localRegistry{oci.NewHelmRegistry(o.Client), registry})
	p.Check(err)
	o.running = p.Background(ctx, mgr.Start)
	cleanUp(ctx, p, func(ctx context.Context) error { return o.removeExtension(ctx, p) })
	p.Check(o.removeExtension(ctx, p)) // if an earlier run was killed
	return o
}

// cleanUp calls remove after the scenario, even with LEAVE: the controllers end with the scenario,
// and without them the Extension cannot be removed.
func cleanUp(ctx context.Context, p *rig.Run, remove func(context.Context) error) {
	p.Scenario.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), operationTimeout)
		defer cancel()
		if err := remove(ctx); err != nil {
			p.Scenario.Errorf("clean-up: %v", err)
		}
	})
}

// installDefinitions installs the CRDs of Gardens and Extensions from the Gardener module. They
// stay: gardenlet would fail to look for Gardens after it has once found their CRD.
func (o *operator) installDefinitions(ctx context.Context, root string) error {
	folder, err := command.Output(ctx, "go", "-C", root, "list", "-m", "-f", "{{.Dir}}", "github.com/gardener/gardener")
	if err != nil {
		return fmt.Errorf("find the Gardener module: %w", err)
	}
	var definitions []string
	for _, name := range []string{"gardens", "extensions"} {
		definition, err := os.ReadFile(filepath.Join(strings.TrimSpace(folder), "example", "operator", "10-crd-operator.gardener.cloud_"+name+".yaml"))
		if err != nil {
			return fmt.Errorf("read the CRD of %s: %w", name, err)
		}
		definitions = append(definitions, string(definition))
	}
	deployer, err := crddeployer.New(o.Client, definitions, false)
	if err == nil {
		err = component.OpWait(deployer).Deploy(ctx)
	}
	if err != nil {
		return fmt.Errorf("install the CRDs of gardener-operator: %w", err)
	}
	return nil
}

func newGarden() *operatorv1alpha1.Garden {
	networks := gardener.NewSeed().Spec.Networks
	return &operatorv1alpha1.Garden{
		ObjectMeta: metav1.ObjectMeta{
			Name: "local", Annotations: map[string]string{v1beta1constants.AnnotationKeyGenericTokenKubeconfigSecretName: genericKubeconfig},
		},
		Spec: operatorv1alpha1.GardenSpec{
			RuntimeCluster: operatorv1alpha1.RuntimeCluster{
				Ingress: operatorv1alpha1.Ingress{
					Controller: gardencorev1beta1.IngressController{Kind: "nginx"}, Domains: []operatorv1alpha1.DNSDomain{{Name: "ingress.test"}},
				},
				Networking: operatorv1alpha1.RuntimeNetworking{Pods: []string{networks.Pods}, Services: []string{networks.Services}},
			},
			VirtualCluster: operatorv1alpha1.VirtualCluster{
				DNS:         operatorv1alpha1.DNS{Domains: []operatorv1alpha1.DNSDomain{{Name: "garden.test"}}},
				Gardener:    operatorv1alpha1.Gardener{ClusterIdentity: gardener.GardenIdentity},
				Kubernetes:  operatorv1alpha1.Kubernetes{Version: "1.36.0"},
				Maintenance: operatorv1alpha1.Maintenance{TimeWindow: gardencorev1beta1.MaintenanceTimeWindow{Begin: "220000+0000", End: "230000+0000"}},
				Networking:  operatorv1alpha1.Networking{Services: []string{networks.Services}},
			},
		},
	}
}

// prerequisites returns the Garden, and what gardener-operator creates with it and an Extension
// uses: the kubeconfig for the virtual garden, and the priority class of admissions.
func (o *operator) prerequisites(garden *operatorv1alpha1.Garden) ([]client.Object, error) {
	kubeconfig, err := runtime.Encode(clientcmdlatest.Codec, kubernetesutils.NewKubeconfig("garden",
		clientcmdv1.Cluster{Server: "https://kubernetes.default.svc", CertificateAuthorityData: o.Config.CAData},
		clientcmdv1.AuthInfo{TokenFile: gardenerutils.PathShootToken}))
	if err != nil {
		return nil, fmt.Errorf("encode the kubeconfig for the virtual garden: %w", err)
	}
	return []client.Object{
		garden,
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: gardener.GardenNamespace, Name: genericKubeconfig},
			Data:       map[string][]byte{"kubeconfig": kubeconfig},
		},
		&schedulingv1.PriorityClass{
			ObjectMeta: metav1.ObjectMeta{Name: v1beta1constants.PriorityClassNameGardenSystem400}, Value: 999999400,
		},
	}, nil
}

// succeed writes the status of a reconciled Garden.
func (o *operator) succeed(ctx context.Context, garden *operatorv1alpha1.Garden) error {
	patch := client.MergeFrom(garden.DeepCopy())
	garden.Status.LastOperation = &gardencorev1beta1.LastOperation{
		Type: gardencorev1beta1.LastOperationTypeReconcile, State: gardencorev1beta1.LastOperationStateSucceeded, Progress: 100,
		LastUpdateTime: metav1.Now(),
	}
	if err := o.Status().Patch(ctx, garden, patch); err != nil {
		return fmt.Errorf("write the status of the Garden: %w", err)
	}
	return nil
}

// manager returns the controllers. Those of gardener-resource-manager serve the ManagedResources
// without a class in namespace garden. Those of class seed have a gardener-resource-manager.
func (o *operator) manager(ctx context.Context, p *rig.Run, garden *operatorv1alpha1.Garden, registry oci.Interface) (manager.Manager, error) {
	inGarden := cache.ByObject{Namespaces: map[string]cache.Config{gardener.GardenNamespace: {}}}
	mgr, err := manager.New(o.Config, manager.Options{
		Scheme: o.Scheme(), Logger: p.Session.Testbed.Log, Metrics: server.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: ptr.To(true)}, // the scenario can run again in this process
		Cache: cache.Options{ByObject: map[client.Object]cache.ByObject{
			&resourcesv1alpha1.ManagedResource{}: inGarden, &corev1.Secret{}: inGarden, &corev1.ConfigMap{}: inGarden,
		}},
	})
	if err != nil {
		return nil, fmt.Errorf("create the manager: %w", err)
	}
	virtual, err := gardener.NewSeedClient(o.Config) // the reconciler uses only its chart renderer
	if err != nil {
		return nil, err
	}
	clients := fakeclientmap.NewClientMapBuilder().WithClientSetForKey(keys.ForGarden(garden), virtual).Build()

	var cfg operatorconfigv1alpha1.OperatorConfiguration
	operatorconfigv1alpha1.SetObjectDefaults_OperatorConfiguration(&cfg)
	cfg.Controllers.ExtensionCare.SyncPeriod = &metav1.Duration{Duration: checkPeriod}
	var resources resourcemanagerconfigv1alpha1.ResourceManagerConfiguration
	resourcemanagerconfigv1alpha1.SetObjectDefaults_ResourceManagerConfiguration(&resources)
	resources.Controllers.ClusterID = ptr.To("virtual-garden")

	err = errors.Join(
		indexer.AddControllerInstallationRegistrationRefName(ctx, mgr.GetFieldIndexer()),
		(&extension.Reconciler{Config: cfg, GardenClientMap: clients, HelmRegistry: registry}).AddToManager(mgr),
		(&requiredruntime.Reconciler{Config: cfg.Controllers.ExtensionRequiredRuntime}).AddToManager(mgr),
		(&requiredvirtual.Reconciler{Config: cfg.Controllers.ExtensionRequiredVirtual}).AddToManager(mgr, mgr),
		(&care.Reconciler{Config: cfg}).AddToManager(mgr, mgr),
		(&managedresource.Reconciler{
			Config: resources.Controllers.ManagedResource, ClusterID: *resources.Controllers.ClusterID,
			ClassFilter: resourcemanagerpredicate.NewClassFilter(*resources.Controllers.ResourceClass),
		}).AddToManager(mgr, mgr, mgr),
		health.AddToManager(ctx, mgr, mgr, mgr, resources),
		(&tokenrequestor.Reconciler{ConcurrentSyncs: 1, Class: ptr.To(resourcesv1alpha1.ResourceManagerClassShoot)}).AddToManager(mgr, mgr, mgr),
	)
	if err != nil {
		return nil, fmt.Errorf("add gardener-operator's controllers: %w", err)
	}
	return mgr, nil
}

// await waits until the Extension has these conditions. It fails at once if the controllers have
// ended.
func (o *operator) await(ctx context.Context, p *rig.Run, want map[gardencorev1beta1.ConditionType]gardencorev1beta1.ConditionStatus) {
	p.Helper()
	p.Await(ctx, fmt.Sprintf("the conditions of the Extension are %v", want), operationTimeout, func(ctx context.Context) (bool, string, error) {
		current := operatorExtension()
		if err := errors.Join(o.running.Failed(), o.Get(ctx, client.ObjectKeyFromObject(current), current)); err != nil {
			return false, "", err
		}
		left, state := len(want), "no conditions"
		for _, condition := range current.Status.Conditions {
			if status, ok := want[condition.Type]; ok && condition.Status == status {
				left--
			} else if ok {
				state = fmt.Sprintf("%s is %s: %s", condition.Type, condition.Status, condition.Message)
			}
		}
		return left == 0 && current.Status.ObservedGeneration == current.Generation, state, nil
	})
}

// removeExtension deletes the Extension, if it exists, after the Shoot has stopped to use it. It
// waits until the controllers have removed what they deployed.
func (o *operator) removeExtension(ctx context.Context, p *rig.Run) error {
	if err := o.Get(ctx, client.ObjectKeyFromObject(operatorExtension()), operatorExtension()); err != nil {
		return client.IgnoreNotFound(err)
	}
	if err := rig.Reconcile(ctx, p); err != nil {
		return err
	}
	return removeAndWait(ctx, o.Client, operatorExtension())
}

// remove deletes the objects, and the admission's ServiceAccount in the garden, which Gardener
// keeps.
func (o *operator) remove(ctx context.Context, objects ...client.Object) error {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "extension-admission-registry-cache"}}
	var failed error
	for _, object := range append(objects, account) {
		failed = errors.Join(failed, client.IgnoreNotFound(o.Delete(ctx, object)))
	}
	return failed
}

func operatorExtension() *operatorv1alpha1.Extension {
	return &operatorv1alpha1.Extension{ObjectMeta: metav1.ObjectMeta{Name: v1alpha3.ExtensionType}}
}

// localRegistry pulls charts from a registry of the testbed through its port on this machine, where
// its name does not resolve.
type localRegistry struct {
	oci.Interface
	registry *upstream.Registry
}

// Pull implements oci.Interface.
func (r localRegistry) Pull(ctx context.Context, repository *gardencorev1.OCIRepository) ([]byte, error) {
	local := repository.DeepCopy()
	local.Ref = ptr.To(strings.Replace(repository.GetURL(), r.registry.Host(), r.registry.PushAddress(), 1))
	return r.Interface.Pull(ctx, local)
}
