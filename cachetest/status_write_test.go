package cachetest

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/internal/golden"
	"github.com/gardener-extensions/registry-cache/kind/gardenlet"
	"github.com/gardener-extensions/registry-cache/kind/status"
	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

func TestStatusWrite(t *testing.T) {
	for _, tc := range []struct {
		name   string
		status status.Testbed
	}{
		{"nothing", status.Testbed{Prefix: "registry-cache", Report: testbedReport{}}},
		{"running", status.Testbed{
			Prefix: "registry-cache",
			Clusters: []status.Cluster{
				{Name: "registry-cache-seed", Role: "seed", Problem: "the API server does not answer"},
				{Name: "registry-cache-shoot", Role: "shoot", Kubeconfig: ".testbed/registry-cache/shoot.kubeconfig", Nodes: []status.Node{
					{Name: "registry-cache-shoot-worker", Ready: true, Report: &nodeReport{Mirrors: []nodeconfig.HostConfig{
						{Upstream: "alpha.upstream.test", Hosts: []string{"http://10.96.0.7:5000"}, Server: "http://alpha.upstream.test", Managed: true},
						{Upstream: "other.test", Hosts: []string{"http://127.0.0.1:1"}, Server: "https://other.test"},
					}, Caches: []nodeconfig.State{
						{Upstream: "alpha.upstream.test", Route: nodeconfig.Mirror, Reason: "http://10.96.0.7:5000 answers"},
						{Upstream: "beta.upstream.test", Route: nodeconfig.Direct, Reason: "http://10.96.0.8:5000 answers 503"},
					}}},
					{Name: "registry-cache-shoot-worker2", Problem: "the node does not run"},
				}},
			},
			Report:    testbedReport{Caches: []cacheStatus{{Upstream: "alpha.upstream.test", Endpoint: "https://10.96.0.7:5000", Ready: true}}},
			Upstreams: []status.Upstream{{Host: "alpha.upstream.test", Running: true, State: "Up 5 minutes", Requests: map[string]int{"cache": 7, "node": 1}}},
			Versions:  map[string]string{"docker": "20.10.24", "kubernetes": "v1.36.2"},
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var out bytes.Buffer
			if err := tc.status.Write(&out); err != nil {
				t.Fatal(err)
			}
			golden.Compare(t, "status-"+tc.name+".txt", out.Bytes())
		})
	}
}

var statusTime = metav1.NewTime(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))

func lastOperation(operation gardencorev1beta1.LastOperationType, state gardencorev1beta1.LastOperationState, text string) *gardencorev1beta1.LastOperation {
	return &gardencorev1beta1.LastOperation{Type: operation, State: state, Description: text, Progress: 50, LastUpdateTime: statusTime}
}

// runningShootStatus returns the status of a Shoot whose extension reports an error.
func runningShootStatus() *status.Shoot {
	shoot := gardenlet.Shoot()
	shoot.Status.LastOperation = lastOperation("Reconcile", "Error", "task \"Waiting until extension\nresources are ready\" failed")
	of := status.NewShoot(shoot, gardenlet.StagePresent)

	extension := &extensionsv1alpha1.Extension{}
	extension.Spec.Type = v1alpha3.ExtensionType
	extension.Status.LastOperation = lastOperation("Reconcile", "Error", "Error reconciling")
	extension.Status.LastError = &gardencorev1beta1.LastError{
		Description: "spec.providerConfig.caches[0].upstream: Required value", Codes: []gardencorev1beta1.ErrorCode{"ERR_CONFIGURATION_PROBLEM"},
	}
	extension.Status.Conditions = []gardencorev1beta1.Condition{
		{Type: v1alpha3.ConditionNodesCleaned, Status: "False", Reason: "NotReady", Message: "node worker2 is not ready"},
	}
	extension.Status.ProviderStatus = &runtime.RawExtension{Raw: []byte(`{"apiVersion":"registry.extensions.gardener.cloud/v1alpha3",
		"kind":"RegistryStatus","caches":[{"upstream":"alpha.upstream.test","endpoint":"http://10.96.0.7:5000","remoteURL":"http://alpha.upstream.test"}]}`)}
	other := &extensionsv1alpha1.Extension{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &statusTime}}
	other.Spec.Type = "other"
	of.Extensions = []status.Extension{status.NewExtension(extension, reporter{}), status.NewExtension(other, reporter{})}

	provision, reconcile := &extensionsv1alpha1.OperatingSystemConfig{}, &extensionsv1alpha1.OperatingSystemConfig{}
	provision.Name, provision.Spec.Purpose = "node-init", "provision"
	reconcile.Name, reconcile.Spec.Purpose = "node-original", "reconcile"
	reconcile.Status.LastOperation = lastOperation("Reconcile", "Succeeded", "done")
	reconcile.Spec.Units = []extensionsv1alpha1.Unit{{Name: "kubelet.service"}, {Name: nodeconfig.UnitName, Content: ptr.To(nodeconfig.Unit([]nodeconfig.Registry{
		{Upstream: "alpha.upstream.test", Endpoint: "http://10.96.0.7:5000", UpstreamURL: "http://alpha.upstream.test"},
	}, 0))}}
	of.OperatingSystemConfigs = []status.OperatingSystemConfig{status.NewConfig(provision, reporter{}), status.NewConfig(reconcile, reporter{})}
	units := []status.Unit{
		{Name: "configure-containerd-registries.service", Load: "loaded", Active: "activating", Sub: "start", Result: "success", Restarts: "3"},
		{Name: "gardener-node-agent.service", Load: "not-found", Active: "inactive", Sub: "dead"},
		{Name: "containerd.service", Load: "loaded", Active: "failed", Sub: "failed", Result: "exit-code", Restarts: "0"},
	}
	of.Nodes = []status.Node{
		{Name: "registry-cache-shoot-worker", Registered: true, Ready: true, Units: units, Report: &nodeReport{Mirrors: []nodeconfig.HostConfig{
			{Upstream: "alpha.upstream.test", Hosts: []string{"http://10.96.0.7:5000"}, Server: "http://alpha.upstream.test", Managed: true},
		}}},
		{Name: "registry-cache-shoot-worker2", Problem: "the container does not run"},
		{Name: "registry-cache-shoot-worker3"},
	}
	return of
}

func TestShootStatusWrite(t *testing.T) {
	var out bytes.Buffer
	if err := runningShootStatus().Write(&out); err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "shoot-status-running.txt", out.Bytes())
	encoded, err := json.MarshalIndent(runningShootStatus(), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "shoot-status-running.json", append(encoded, '\n'))
}

func TestUnitThatCannotBeRead(t *testing.T) {
	config := &extensionsv1alpha1.OperatingSystemConfig{}
	config.Spec.Units = []extensionsv1alpha1.Unit{{Name: nodeconfig.UnitName, Content: ptr.To("[Service]\nExecStart=/bin/true\n")}}
	if got := (reporter{}).OfConfig(config).(*configReport); !got.Configured || got.Problem == "" || len(got.Registries) > 0 {
		t.Errorf("got %+v", got)
	}
}
