//go:build e2e

package nodeless

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	resourcemanagerconfigv1alpha1 "github.com/gardener/gardener/pkg/apis/config/resourcemanager/v1alpha1"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/gardener-extensions/registry-cache/bench"
)

// deployments is the stand-in for the controller of the seed's Deployments and for the kubelet. It
// supports only the Deployment of gardener-resource-manager: it starts the program as a process,
// with the configuration from the ConfigMap and the Secrets of the Deployment, and reports the
// Deployment as available once the process is ready. It stops the process if the Deployment is
// scaled to zero, changed or deleted.
type deployments struct {
	environment *environment
	seed        client.WithWatch
	cancel      context.CancelFunc
	done        chan struct{}

	// running maps a namespace to the process for its Deployment.
	running map[string]*resourceManager
}

// resourceManager is the process of gardener-resource-manager, started for one generation of its
// Deployment.
type resourceManager struct {
	*bench.Process
	generation int64
}

// watchDeployments starts and returns the stand-in, which calls fail if it cannot continue.
func watchDeployments(ctx context.Context, e *environment, fail func(error)) (*deployments, error) {
	seed, err := client.NewWithWatch(e.seed.control.Admin(), client.Options{Scheme: kubernetes.SeedScheme})
	if err != nil {
		return nil, fmt.Errorf("connect to the seed: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	d := &deployments{environment: e, seed: seed, cancel: cancel, done: make(chan struct{}), running: map[string]*resourceManager{}}
	events, err := seed.Watch(ctx, &appsv1.DeploymentList{}, client.MatchingLabels{"app": resourceManagerName})
	if err != nil {
		cancel()
		return nil, fmt.Errorf("watch the Deployments of the seed: %w", err)
	}
	go func() {
		defer close(d.done)
		for event := range events.ResultChan() {
			deployment, ok := event.Object.(*appsv1.Deployment)
			if !ok {
				fail(fmt.Errorf("watch the Deployments of the seed: %v", event.Object))
				return
			}
			if err := d.sync(ctx, event.Type, deployment); err != nil && ctx.Err() == nil {
				fail(fmt.Errorf("stand-in for Deployment %s: %w", client.ObjectKeyFromObject(deployment), err))
				return
			}
		}
		if ctx.Err() == nil {
			fail(errors.New("the watch of the seed's Deployments ended"))
		}
	}()
	return d, nil
}

// stop ends the stand-in and its processes.
func (d *deployments) stop() error {
	d.cancel()
	<-d.done
	var err error
	for _, process := range d.running {
		err = errors.Join(err, process.Stop())
	}
	return err
}

func (d *deployments) sync(ctx context.Context, event watch.EventType, deployment *appsv1.Deployment) error {
	current := d.running[deployment.Namespace]
	wanted := event != watch.Deleted && deployment.DeletionTimestamp == nil && ptr.Deref(deployment.Spec.Replicas, 1) > 0
	if wanted && current != nil && current.generation == deployment.Generation {
		return current.Running()
	}
	if current != nil {
		delete(d.running, deployment.Namespace)
		if err := current.Stop(); err != nil {
			return err
		}
	}
	if event == watch.Deleted {
		return nil
	}
	replicas := int32(0)
	if wanted {
		process, err := d.run(ctx, deployment.Namespace)
		if err != nil {
			return err
		}
		d.running[deployment.Namespace] = &resourceManager{process, deployment.Generation}
		replicas = 1
	}
	return d.report(ctx, deployment, replicas)
}

// run starts gardener-resource-manager and returns when it is ready.
func (d *deployments) run(ctx context.Context, namespace string) (*bench.Process, error) {
	folder := filepath.Join(d.environment.folder, resourceManagerName, namespace)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, fmt.Errorf("create its folder: %w", err)
	}
	ports, err := bench.FreePorts(3)
	if err != nil {
		return nil, err
	}
	config, err := d.config(ctx, namespace, folder, ports)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(folder, "config.yaml")
	if err := os.WriteFile(path, config, 0o600); err != nil {
		return nil, fmt.Errorf("write its configuration: %w", err)
	}
	return bench.Program{
		Name: resourceManagerName, Path: d.environment.programs[resourceManagerName], Arguments: []string{"--config=" + path},
		Folder: folder, Ready: "http://127.0.0.1:" + ports[0] + "/readyz",
	}.Start(ctx)
}

// config returns the configuration from the ConfigMap, changed to ports and paths of this machine.
// It also writes the files that a pod would mount.
func (d *deployments) config(ctx context.Context, namespace, folder string, ports []string) ([]byte, error) {
	stored := &corev1.ConfigMap{}
	if err := d.seed.Get(ctx, client.ObjectKey{Namespace: namespace, Name: resourceManagerName}, stored); err != nil {
		return nil, err
	}
	config := &resourcemanagerconfigv1alpha1.ResourceManagerConfiguration{}
	if err := yaml.Unmarshal([]byte(stored.Data["config.yaml"]), config); err != nil {
		return nil, fmt.Errorf("decode its configuration: %w", err)
	}
	// The kubeconfig's user is the service account, so the same RBAC rules apply as in a pod.
	source, err := d.environment.seed.control.Kubeconfig("system:serviceaccount:"+namespace+":"+resourceManagerName,
		"system:serviceaccounts", "system:serviceaccounts:"+namespace)
	if err != nil {
		return nil, err
	}
	config.SourceClientConnection.Kubeconfig = filepath.Join(folder, "source.kubeconfig")
	if err := os.WriteFile(config.SourceClientConnection.Kubeconfig, source, 0o600); err != nil {
		return nil, fmt.Errorf("write its kubeconfig: %w", err)
	}
	config.Server.Webhooks.TLS.ServerCertDir = folder
	if err := d.mount(ctx, namespace, resourceManagerName+"-server", folder); err != nil {
		return nil, err
	}
	if config.TargetClientConnection == nil { // in a pod, the target would be the pod's cluster
		config.TargetClientConnection = new(resourcemanagerconfigv1alpha1.ClientConnection)
		config.TargetClientConnection.Kubeconfig = config.SourceClientConnection.Kubeconfig
	} else {
		config.TargetClientConnection.Kubeconfig = filepath.Join(folder, kubernetes.KubeConfig)
		if err := d.mount(ctx, namespace, resourceManagerName+"-target", folder); err != nil {
			return nil, err
		}
	}
	servers := []*resourcemanagerconfigv1alpha1.Server{config.Server.HealthProbes, config.Server.Metrics, &config.Server.Webhooks.Server}
	for i, server := range servers {
		server.BindAddress = "127.0.0.1"
		if server.Port, err = strconv.Atoi(ports[i]); err != nil {
			return nil, err
		}
	}
	return yaml.Marshal(config)
}

// mount writes the Secret to files in the folder.
func (d *deployments) mount(ctx context.Context, namespace, name, folder string) error {
	secret := &corev1.Secret{}
	if err := d.seed.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, secret); err != nil {
		return err
	}
	for key, value := range secret.Data {
		if err := os.WriteFile(filepath.Join(folder, key), value, 0o600); err != nil {
			return fmt.Errorf("mount Secret %s: %w", name, err)
		}
	}
	return nil
}

// report writes the status that a finished rollout to this number of replicas would have.
func (d *deployments) report(ctx context.Context, deployment *appsv1.Deployment, replicas int32) error {
	patch := client.MergeFrom(deployment.DeepCopy())
	deployment.Status = appsv1.DeploymentStatus{
		ObservedGeneration: deployment.Generation, Replicas: replicas, UpdatedReplicas: replicas, ReadyReplicas: replicas, AvailableReplicas: replicas,
		Conditions: []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue, LastUpdateTime: metav1.Now(), LastTransitionTime: metav1.Now()},
			{
				Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable",
				LastUpdateTime: metav1.Now(), LastTransitionTime: metav1.Now(),
			},
		},
	}
	return client.IgnoreNotFound(d.seed.Status().Patch(ctx, deployment, patch))
}
