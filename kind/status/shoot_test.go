package status

import (
	"testing"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/gardenlet"
	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

var statusTime = metav1.NewTime(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))

func lastOperation(operation gardencorev1beta1.LastOperationType, state gardencorev1beta1.LastOperationState, text string) *gardencorev1beta1.LastOperation {
	return &gardencorev1beta1.LastOperation{Type: operation, State: state, Description: text, Progress: 50, LastUpdateTime: statusTime}
}

const showOutput = `Id=configure-containerd-registries.service
LoadState=loaded
ActiveState=activating
SubState=start
Result=success
NRestarts=3

Id=gardener-node-agent.service
LoadState=not-found
ActiveState=inactive
SubState=dead

Id=containerd.service
LoadState=loaded
ActiveState=failed
SubState=failed
Result=exit-code
NRestarts=0
`

// runningShootStatus returns the status of a Shoot whose extension reports an error.
func runningShootStatus() *Shoot {
	shoot := gardenlet.Shoot()
	shoot.Status.LastOperation = lastOperation("Reconcile", "Error", "task \"Waiting until extension\nresources are ready\" failed")
	status := NewShoot(shoot, gardenlet.StagePresent)

	extension := &extensionsv1alpha1.Extension{}
	extension.Spec.Type = kind.ExtensionName
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
	status.Extensions = []Extension{extensionOf(extension), extensionOf(other)}

	provision, reconcile := &extensionsv1alpha1.OperatingSystemConfig{}, &extensionsv1alpha1.OperatingSystemConfig{}
	provision.Name, provision.Spec.Purpose = "node-init", "provision"
	reconcile.Name, reconcile.Spec.Purpose = "node-original", "reconcile"
	reconcile.Status.LastOperation = lastOperation("Reconcile", "Succeeded", "done")
	reconcile.Spec.Units = []extensionsv1alpha1.Unit{{Name: "kubelet.service"}, {Name: nodeconfig.UnitName, Content: ptr.To(nodeconfig.Unit([]nodeconfig.Registry{
		{Upstream: "alpha.upstream.test", Endpoint: "http://10.96.0.7:5000", UpstreamURL: "http://alpha.upstream.test"},
	}, 0))}}
	status.OperatingSystemConfigs = []OperatingSystemConfig{configOf(provision), configOf(reconcile)}
	status.Nodes = []Node{
		{Name: "registry-cache-shoot-worker", Registered: true, Ready: true, Units: parseUnits(showOutput), Mirrors: []nodeconfig.HostConfig{
			{Upstream: "alpha.upstream.test", Hosts: []string{"http://10.96.0.7:5000"}, Server: "http://alpha.upstream.test", Managed: true},
		}},
		{Name: "registry-cache-shoot-worker2", Problem: "the container does not run"},
		{Name: "registry-cache-shoot-worker3"},
	}
	return status
}

func TestStateOfAShoot(t *testing.T) {
	for _, tc := range []struct {
		stage              gardenlet.Stage
		wanted, hibernated bool
		want               string
	}{
		{"", false, false, "not known"},
		{gardenlet.StageMigrated, true, true, "migrated"},
		{gardenlet.StagePresent, false, false, "awake"},
		{gardenlet.StagePresent, true, false, "to be hibernated"},
		{gardenlet.StagePresent, true, true, "hibernated"},
		{gardenlet.StagePresent, false, true, "to be woken up"},
	} {
		status := &Shoot{Stage: tc.stage, Hibernation: tc.wanted, Hibernated: tc.hibernated}
		if got := status.state(); got != tc.want {
			t.Errorf("%+v: %q, want %q", tc, got, tc.want)
		}
	}
}
