package gardenlet

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	v1beta1helper "github.com/gardener/gardener/pkg/api/core/v1beta1/helper"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	fakekubernetes "github.com/gardener/gardener/pkg/client/kubernetes/fake"
	"github.com/gardener/gardener/pkg/extensions"
	"github.com/gardener/gardener/pkg/utils/flow"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/gardener-extensions/registry-cache/kind/gardener"
)

const kubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: shoot, cluster: {server: "https://shoot-control-plane:6443"}}]
users: [{name: admin, user: {token: secret}}]
contexts: [{name: shoot, context: {cluster: shoot, user: admin}}]
current-context: shoot
`

// namespace is the namespace of testGardenlet's shoot.
var namespace = Namespace(DefaultShoot)

// testGardenlet returns a Gardenlet on in-memory clusters. Its garden contains an extension of type
// sample.
func testGardenlet(shootObjects ...client.Object) *Gardenlet {
	registration := &gardencorev1beta1.ControllerRegistration{
		ObjectMeta: metav1.ObjectMeta{Name: "sample"},
		Spec: gardencorev1beta1.ControllerRegistrationSpec{
			Resources: []gardencorev1beta1.ControllerResource{{Kind: extensionsv1alpha1.ExtensionResource, Type: "sample"}},
		},
	}
	clientSet := func(c client.Client) *fakekubernetes.ClientSetBuilder {
		return fakekubernetes.NewClientSetBuilder().WithClient(c).WithVersion("1.36.4").WithRESTConfig(&rest.Config{})
	}
	podsByNode := func(o client.Object) []string {
		pod, _ := o.(*corev1.Pod)
		return []string{pod.Spec.NodeName}
	}
	return &Gardenlet{
		Name: DefaultShoot,
		Seed: clientSet(fake.NewClientBuilder().WithScheme(kubernetes.SeedScheme).
			WithStatusSubresource(&extensionsv1alpha1.Extension{}).Build()).Build(),
		Shoot: clientSet(fake.NewClientBuilder().WithScheme(kubernetes.ShootScheme).WithObjects(shootObjects...).
			WithIndex(&corev1.Pod{}, "spec.nodeName", podsByNode).Build()).Build(),
		ShootKubeconfig: []byte(kubeconfig),
		Garden:          gardener.NewGarden(registration),
		pause:           time.Millisecond,
	}
}

func prepared(t *testing.T, g *Gardenlet, shoot *gardencorev1beta1.Shoot) *shootOperation {
	t.Helper()
	return preparedFor(t, g, shoot, process{})
}

func preparedFor(t *testing.T, g *Gardenlet, shoot *gardencorev1beta1.Shoot, p process) *shootOperation {
	t.Helper()
	o, err := g.prepareFor(t.Context(), shoot, p)
	if err != nil {
		t.Fatal(err)
	}
	if err := o.sync(t.Context(), o.Shoot.GetInfo()); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestNamespaceLabelFollowsTheExtension(t *testing.T) {
	g := testGardenlet()
	for _, step := range []struct {
		shoot *gardencorev1beta1.Shoot
		want  string
	}{
		{Shoot(Extension("sample", nil)), "true"},
		{Shoot(), ""},
		{Shoot(Extension("sample", []byte(`{}`))), "true"},
	} {
		if err := prepared(t, g, step.shoot).tasks().deployNamespace(t.Context()); err != nil {
			t.Fatal(err)
		}
		got := &corev1.Namespace{}
		if err := g.Seed.Client().Get(t.Context(), client.ObjectKey{Name: namespace}, got); err != nil {
			t.Fatal(err)
		}
		if label := got.Labels["extensions.gardener.cloud/sample"]; label != step.want {
			t.Errorf("with %d extensions the label is %q, want %q", len(step.shoot.Spec.Extensions), label, step.want)
		}
		if role := got.Labels["gardener.cloud/role"]; role != "shoot" {
			t.Errorf("the role is %q: the extension library would not recognize a shoot", role)
		}
	}
}

func TestClusterShowsTheOperation(t *testing.T) {
	g := testGardenlet()
	last := func() (*gardencorev1beta1.Shoot, *gardencorev1beta1.LastOperation) {
		t.Helper()
		cluster, err := extensions.GetCluster(t.Context(), g.Seed.Client(), namespace)
		if err != nil {
			t.Fatal(err)
		}
		return cluster.Shoot, cluster.Shoot.Status.LastOperation
	}
	expect := func(operation gardencorev1beta1.LastOperationType, state gardencorev1beta1.LastOperationState) {
		t.Helper()
		if _, got := last(); got.Type != operation || got.State != state {
			t.Errorf("the cluster shows %s %s, want %s %s", got.Type, got.State, operation, state)
		}
	}

	create := prepared(t, g, Shoot())
	expect(gardencorev1beta1.LastOperationTypeCreate, gardencorev1beta1.LastOperationStateProcessing)
	if err := create.finish(t.Context(), errors.New("no space")); err != nil {
		t.Fatal(err)
	}
	expect(gardencorev1beta1.LastOperationTypeCreate, gardencorev1beta1.LastOperationStateError)
	if err := prepared(t, g, Shoot()).finish(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	expect(gardencorev1beta1.LastOperationTypeCreate, gardencorev1beta1.LastOperationStateSucceeded)
	prepared(t, g, Shoot())
	expect(gardencorev1beta1.LastOperationTypeReconcile, gardencorev1beta1.LastOperationStateProcessing)

	prepared(t, g, markDeleted(Shoot()))
	expect(gardencorev1beta1.LastOperationTypeDelete, gardencorev1beta1.LastOperationStateProcessing)
	shoot, _ := last()
	if shoot.DeletionTimestamp == nil {
		t.Error("the cluster does not show the shoot's deletion: extensions would clean nodes")
	}
	if got := shoot.Spec.Kubernetes.Version; got != "1.36.4" {
		t.Errorf("Kubernetes version %q, want the one of the API server", got)
	}
}

func TestOperatingSystemConfigs(t *testing.T) {
	g := testGardenlet()
	o := prepared(t, g, Shoot())
	if err := o.tasks().deployOperatingSystemConfig(t.Context()); err != nil {
		t.Fatal(err)
	}
	configs := &extensionsv1alpha1.OperatingSystemConfigList{}
	if err := g.Seed.Client().List(t.Context(), configs, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	if len(configs.Items) != 2 {
		t.Fatalf("there are %d configs, want one for provisioning and one for reconciling", len(configs.Items))
	}
	for _, config := range configs.Items {
		if config.Spec.Type != "kind" || len(config.Spec.Units) > 0 || len(config.Spec.Files) > 0 || config.Spec.CRIConfig != nil {
			t.Errorf("config %s would change what belongs to kind: %+v", config.Name, config.Spec)
		}
		if !strings.HasPrefix(config.Name, workers{o}.secretName()+"-") {
			t.Errorf("config %s does not belong to secret %s", config.Name, workers{o}.secretName())
		}
	}
}

func TestLeftManagedResourceFailsTheDeletion(t *testing.T) {
	g := testGardenlet()
	mine := &resourcesv1alpha1.ManagedResource{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "left-behind"},
	}
	seedClass := &resourcesv1alpha1.ManagedResource{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "of-the-seed"},
		Spec:       resourcesv1alpha1.ManagedResourceSpec{Class: ptr.To("seed")},
	}
	for _, resource := range []client.Object{mine, seedClass} {
		if err := g.Seed.Client().Create(t.Context(), resource); err != nil {
			t.Fatal(err)
		}
	}
	wait := prepared(t, g, Shoot()).tasks().waitUntilShootManagedResourcesDeleted
	err := wait.Timeout(10 * time.Millisecond)(t.Context())
	if err == nil || !strings.Contains(err.Error(), "left-behind") || strings.Contains(err.Error(), "of-the-seed") {
		t.Errorf("error %v does not name the one ManagedResource that is left", err)
	}
	if err := g.Seed.Client().Delete(t.Context(), mine); err != nil {
		t.Fatal(err)
	}
	if err := wait.Timeout(time.Minute)(t.Context()); err != nil {
		t.Errorf("with nothing left: %v", err)
	}
}

func TestRunRetries(t *testing.T) {
	configurationProblem := v1beta1helper.NewErrorWithCodes(errors.New("bad config"), gardencorev1beta1.ErrorConfigurationProblem)
	for name, test := range map[string]struct {
		errors   []error
		attempts int
		want     string
	}{
		"succeeds at once":              {nil, 1, ""},
		"gives up after its attempts":   {[]error{errors.New("one"), errors.New("two"), errors.New("three"), errors.New("four")}, 3, "three"},
		"does not retry what is not ok": {[]error{configurationProblem, errors.New("two")}, 1, "bad config"},
		"succeeds after a failure":      {[]error{errors.New("one")}, 2, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := testGardenlet()
			runs := 0
			err := g.run(t.Context(), Shoot(), process{newGraph: func(tasks) *flow.Graph {
				graph := flow.NewGraph("test")
				graph.Add(flow.Task{Name: "task", Fn: func(context.Context) error {
					runs++
					if runs <= len(test.errors) {
						return test.errors[runs-1]
					}
					return nil
				}})
				return graph
			}})
			if runs != test.attempts {
				t.Errorf("ran %d times, want %d", runs, test.attempts)
			}
			switch {
			case test.want == "" && err != nil:
				t.Errorf("failed: %v", err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("error %v does not contain %q", err, test.want)
			}
		})
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	err := testGardenlet().run(ctx, Shoot(), process{newGraph: func(tasks) *flow.Graph {
		graph := flow.NewGraph("test")
		graph.Add(flow.Task{Name: "task", Fn: func(context.Context) error { cancel(); return errors.New("one") }})
		return graph
	}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v does not say that the context was canceled", err)
	}
}

// fakeMachine is a machine whose node exists in the shoot while the machine runs.
type fakeMachine struct {
	name  string
	shoot client.Client
	calls []string
	asked int // how often a caller asked whether the machine is configured
}

func (m *fakeMachine) Name() string { return m.name }

func (m *fakeMachine) Exec(_ context.Context, argv ...string) (string, error) {
	switch {
	case argv[0] == "test":
		m.calls = append(m.calls, "configured?")
		if m.asked++; m.asked <= 2 {
			return "", errors.New("no such file")
		}
	case slices.Contains(argv, "kubelet.service"):
		m.calls = append(m.calls, argv[1]+" kubelet")
	case slices.Contains(argv, "restart"):
		m.calls = append(m.calls, "restart")
	}
	return "", nil
}

func (m *fakeMachine) WriteFile(context.Context, string, fs.FileMode, []byte) error { return nil }

func (m *fakeMachine) StopMachine(context.Context) error {
	m.calls = append(m.calls, "stop")
	return nil
}

func (m *fakeMachine) StartMachine(ctx context.Context, configure func(context.Context) error) error {
	m.calls = append(m.calls, "start")
	if err := configure(ctx); err != nil {
		return err
	}
	m.calls = append(m.calls, "start kubelet")
	return m.shoot.Create(ctx, node(m.name))
}

func node(name string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
}

func TestWorkers(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "pod"}, Spec: corev1.PodSpec{NodeName: "worker"}}
	elsewhere := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "other"}, Spec: corev1.PodSpec{NodeName: "control-plane"}}
	g := testGardenlet(node("worker"), node("control-plane"), pod, elsewhere)
	shoot := g.Shoot.Client()
	machine := &fakeMachine{name: "worker", shoot: shoot}
	g.Machines = []Machine{machine}
	o := prepared(t, g, Shoot())
	steps := o.tasks()
	if err := flow.Sequential(steps.deployExtensions, steps.deployOperatingSystemConfig, steps.deployWorker, steps.waitUntilWorkerReady)(t.Context()); err != nil {
		t.Fatal(err)
	}
	poolNode := &corev1.Node{}
	if err := shoot.Get(t.Context(), client.ObjectKey{Name: "worker"}, poolNode); err != nil {
		t.Fatal(err)
	}
	for label, want := range map[string]string{
		"worker.gardener.cloud/pool":                            WorkerPool,
		"worker.gardener.cloud/gardener-node-agent-secret-name": workers{o}.secretName(),
	} {
		if got := poolNode.Labels[label]; got != want || want == "" {
			t.Errorf("label %s is %q, want %q", label, got, want)
		}
	}
	machine.requireCalls(t, "configured?", "stop kubelet", "configured?", "restart", "configured?", "start kubelet")
	if err := steps.deployWorker(t.Context()); err != nil {
		t.Fatal(err)
	}
	machine.requireCalls(t, "configured?", "restart")

	if err := flow.Sequential(steps.destroyWorker, steps.waitUntilWorkerGone)(t.Context()); err != nil {
		t.Fatal(err)
	}
	pods := &corev1.PodList{}
	if err := shoot.List(t.Context(), pods); err != nil {
		t.Fatal(err)
	}
	if len(pods.Items) != 1 || pods.Items[0].Name != "other" {
		t.Errorf("the pods are %v, want the one that was not on the machine", pods.Items)
	}

	if err := steps.deployWorker(t.Context()); err != nil {
		t.Fatal(err)
	}
	machine.requireCalls(t, "stop", "start", "restart", "configured?", "start kubelet", "restart")
}

// requireCalls compares the calls since the last comparison.
func (m *fakeMachine) requireCalls(t *testing.T, want ...string) {
	t.Helper()
	if !slices.Equal(m.calls, want) {
		t.Errorf("calls of the machine: %q, want %q", m.calls, want)
	}
	m.calls = nil
}
