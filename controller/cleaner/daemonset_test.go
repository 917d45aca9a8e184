package cleaner

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	"github.com/gardener-extensions/registry-cache/internal/golden"
)

const image = "registry.example/registry-cache:v1"

func TestDaemonSetGolden(t *testing.T) {
	for name, task := range map[string]Task{
		"two-upstreams": {
			Upstreams: []string{"beta.upstream.test:5000", "alpha.upstream.test"},
			Endpoints: []string{"https://10.4.0.2:5000", "http://[fd00::1]:5000"},
		},
		"all": {All: true, Upstreams: []string{"alpha.upstream.test"}, Endpoints: []string{"https://10.4.0.1:5000"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := yaml.Marshal(DaemonSet(task, image))
			if err != nil {
				t.Fatal(err)
			}
			golden.Compare(t, name+".yaml", got)
		})
	}
}

func TestSameTaskSamePods(t *testing.T) {
	task := Task{Upstreams: []string{"b.test", "a.test"}, Endpoints: []string{"http://10.0.0.2:5000", "http://10.0.0.1:5000"}}
	one := arguments(task)
	slices.Reverse(task.Upstreams)
	slices.Reverse(task.Endpoints)
	if other := arguments(task); !slices.Equal(one, other) {
		t.Errorf("the order changes the pods: %v, %v", one, other)
	}
}

// TestSELinux: with the default type, container_t, the init container could write neither
// /etc/containerd nor to systemd's socket. The other container needs no access to the node.
func TestSELinux(t *testing.T) {
	set := DaemonSet(Task{All: true}, image)
	spec := set.Spec.Template.Spec
	if options := spec.InitContainers[0].SecurityContext.SELinuxOptions; options == nil || options.Type != "spc_t" {
		t.Errorf("the init container has the SELinux options %v", options)
	}
	if spec.SecurityContext.SELinuxOptions != nil || spec.Containers[0].SecurityContext.SELinuxOptions != nil {
		t.Error("the container that pauses has SELinux options")
	}
}

// TestTaskChangesEverywhereAtOnce: the pod on a node that is not ready is never available. With
// maxUnavailable 1 it would block the update of all other pods.
func TestTaskChangesEverywhereAtOnce(t *testing.T) {
	set := DaemonSet(Task{All: true}, image)
	const nodes = 100
	update := set.Spec.UpdateStrategy.RollingUpdate
	if update == nil || update.MaxUnavailable == nil {
		t.Fatalf("the update strategy is %+v", set.Spec.UpdateStrategy)
	}
	if at, err := intstr.GetScaledValueFromIntOrPercent(update.MaxUnavailable, nodes, true); err != nil || at != nodes {
		t.Errorf("a new task starts on %d of %d nodes at once, error %v", at, nodes, err)
	}
}
