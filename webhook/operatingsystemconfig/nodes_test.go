package operatingsystemconfig

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	extensionswebhook "github.com/gardener/gardener/extensions/pkg/webhook"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"github.com/gardener/gardener/pkg/client/kubernetes"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

const namespace = "shoot--local--local"

// fakeManager implements what New needs of a manager. The field cached is a client that finds no
// Extensions, as an outdated cache of a manager would.
type fakeManager struct {
	manager.Manager
	cached, live client.Client
}

func (m fakeManager) GetClient() client.Client    { return m.cached }
func (m fakeManager) GetAPIReader() client.Reader { return m.live }
func (m fakeManager) GetScheme() *runtime.Scheme  { return kubernetes.SeedScheme }

func newClient(objects ...client.Object) client.Client {
	return fake.NewClientBuilder().WithScheme(kubernetes.SeedScheme).WithObjects(objects...).Build()
}

func newWebhook(t *testing.T, shoot *gardencorev1beta1.Shoot, extensions ...client.Object) *extensionswebhook.Webhook {
	t.Helper()
	webhook, err := New(newManager(t, shoot, extensions...))
	if err != nil {
		t.Fatal(err)
	}
	return webhook
}

func newManager(t *testing.T, shoot *gardencorev1beta1.Shoot, extensions ...client.Object) fakeManager {
	t.Helper()
	shoot.TypeMeta = metav1.TypeMeta{APIVersion: gardencorev1beta1.SchemeGroupVersion.String(), Kind: "Shoot"}
	shoot.Spec.Kubernetes.Version = "1.36.4"
	raw, err := json.Marshal(shoot)
	if err != nil {
		t.Fatal(err)
	}
	cluster := &extensionsv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: namespace},
		Spec:       extensionsv1alpha1.ClusterSpec{Shoot: runtime.RawExtension{Raw: raw}},
	}
	return fakeManager{cached: newClient(cluster), live: newClient(extensions...)}
}

func newExtension(status string) *extensionsv1alpha1.Extension {
	extension := &extensionsv1alpha1.Extension{ObjectMeta: metav1.ObjectMeta{Name: v1alpha3.ExtensionType, Namespace: namespace}}
	if status != "" {
		extension.Status.ProviderStatus = &runtime.RawExtension{Raw: []byte(status)}
	}
	return extension
}

func status(caches string) string {
	return `{"apiVersion":"registry.extensions.gardener.cloud/v1alpha3","kind":"RegistryStatus","caches":[` + caches + `]}`
}

const (
	alphaStatus = `{"upstream":"alpha.upstream.test","endpoint":"http://10.4.0.1:5000","remoteURL":"https://alpha.upstream.test"}`
	betaStatus  = `{"upstream":"beta.upstream.test:5000","endpoint":"http://10.4.0.2:5000","remoteURL":"http://beta.upstream.test:5000"}`
)

var (
	alpha = nodeconfig.Registry{Upstream: "alpha.upstream.test", Endpoint: "http://10.4.0.1:5000", UpstreamURL: "https://alpha.upstream.test"}
	beta  = nodeconfig.Registry{Upstream: "beta.upstream.test:5000", Endpoint: "http://10.4.0.2:5000", UpstreamURL: "http://beta.upstream.test:5000"}
)

func newOSC(purpose extensionsv1alpha1.OperatingSystemConfigPurpose) *extensionsv1alpha1.OperatingSystemConfig {
	return &extensionsv1alpha1.OperatingSystemConfig{
		TypeMeta:   metav1.TypeMeta{APIVersion: extensionsv1alpha1.SchemeGroupVersion.String(), Kind: "OperatingSystemConfig"},
		ObjectMeta: metav1.ObjectMeta{Name: "local", Namespace: namespace},
		Spec: extensionsv1alpha1.OperatingSystemConfigSpec{
			Purpose: purpose,
			Units:   []extensionsv1alpha1.Unit{{Name: "other.service"}},
			Files:   []extensionsv1alpha1.File{{Path: "/etc/other"}},
		},
	}
}

func TestMutate(t *testing.T) {
	for name, test := range map[string]struct {
		status     string
		registries []nodeconfig.Registry
	}{
		"two caches": {status(betaStatus + "," + alphaStatus), []nodeconfig.Registry{alpha, beta}},
		"one cache":  {status(alphaStatus), []nodeconfig.Registry{alpha}},
		"none left":  {status(""), nil},
	} {
		t.Run(name, func(t *testing.T) {
			extension := newExtension(test.status)
			extension.Status.State = &runtime.RawExtension{Raw: []byte(`{"cleanUps":1}`)}
			webhook := newWebhook(t, &gardencorev1beta1.Shoot{}, extension)
			osc := mutate(t, webhook, newOSC(extensionsv1alpha1.OperatingSystemConfigPurposeReconcile))
			checkScript(t, osc)
			unit := extensionswebhook.UnitWithName(osc.Spec.Units, nodeconfig.UnitName)
			if unit == nil || extensionswebhook.UnitWithName(osc.Spec.Units, "other.service") == nil {
				t.Fatalf("units = %+v", osc.Spec.Units)
			}
			if !ptr.Deref(unit.Enable, false) || ptr.Deref(unit.Command, "") != extensionsv1alpha1.CommandStart {
				t.Errorf("enable = %v, command = %v", unit.Enable, unit.Command)
			}
			if !slices.Equal(unit.FilePaths, []string{nodeconfig.ScriptPath}) {
				t.Errorf("filePaths = %v", unit.FilePaths)
			}
			registries, err := nodeconfig.ParseUnit(*unit.Content)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(registries, test.registries) {
				t.Errorf("the unit configures %v, want %v", registries, test.registries)
			}
			if again := mutate(t, webhook, osc.DeepCopy()); !reflect.DeepEqual(again.Spec, osc.Spec) {
				t.Errorf("a second mutation changes the OperatingSystemConfig:\n%+v\n%+v", again.Spec, osc.Spec)
			}
		})
	}
}

// TestMutateKeepsOtherContent checks that unknown fields in the kubelet's configuration are kept.
func TestMutateKeepsOtherContent(t *testing.T) {
	const config = "# by hand\napiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nunknownField: 1\n"
	const service = "[Service]\n# by hand\nExecStart=/opt/bin/kubelet --unknown-flag\n"
	osc := newOSC(extensionsv1alpha1.OperatingSystemConfigPurposeReconcile)
	osc.Spec.Units = append(osc.Spec.Units, extensionsv1alpha1.Unit{Name: "kubelet.service", Content: ptr.To(service)})
	osc.Spec.Files = append(osc.Spec.Files, extensionsv1alpha1.File{Path: "/var/lib/kubelet/config/kubelet", Content: extensionsv1alpha1.FileContent{
		Inline: &extensionsv1alpha1.FileContentInline{Encoding: "b64", Data: base64.StdEncoding.EncodeToString([]byte(config))},
	}})
	after := mutate(t, newWebhook(t, &gardencorev1beta1.Shoot{}, newExtension(status(alphaStatus))), osc.DeepCopy())
	if !reflect.DeepEqual(after.Spec.Units[:2], osc.Spec.Units) || len(after.Spec.Units) != 3 {
		t.Errorf("units = %+v", after.Spec.Units)
	}
	if !reflect.DeepEqual(after.Spec.Files[:2], osc.Spec.Files) || len(after.Spec.Files) != 3 {
		t.Errorf("files = %+v", after.Spec.Files)
	}
}

// TestMutateWithoutLists checks an OperatingSystemConfig without units and files.
func TestMutateWithoutLists(t *testing.T) {
	osc := newOSC(extensionsv1alpha1.OperatingSystemConfigPurposeReconcile)
	osc.Spec.Units, osc.Spec.Files = nil, nil
	after := mutate(t, newWebhook(t, &gardencorev1beta1.Shoot{}, newExtension(status(alphaStatus))), osc)
	if len(after.Spec.Units) != 1 || len(after.Spec.Files) != 1 {
		t.Errorf("units = %+v, files = %+v", after.Spec.Units, after.Spec.Files)
	}
}

func TestHandleRejectsInvalidObject(t *testing.T) {
	webhook := newWebhook(t, &gardencorev1beta1.Shoot{}, newExtension(status(alphaStatus)))
	response := webhook.Webhook.Handler.Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Namespace: namespace, Object: runtime.RawExtension{Raw: []byte(`{"spec":[]}`)},
	}})
	if response.Allowed || response.Result.Code != http.StatusBadRequest {
		t.Errorf("response = %+v", response)
	}
}

func checkScript(t *testing.T, osc *extensionsv1alpha1.OperatingSystemConfig) {
	t.Helper()
	file := extensionswebhook.FileWithPath(osc.Spec.Files, nodeconfig.ScriptPath)
	if file == nil || extensionswebhook.FileWithPath(osc.Spec.Files, "/etc/other") == nil {
		t.Fatalf("files = %+v", osc.Spec.Files)
	}
	if ptr.Deref(file.Permissions, 0) != 0o744 || file.Content.Inline.Encoding != "b64" {
		t.Errorf("permissions = %v, encoding = %q", file.Permissions, file.Content.Inline.Encoding)
	}
	script, err := base64.StdEncoding.DecodeString(file.Content.Inline.Data)
	if err != nil || string(script) != nodeconfig.Script() {
		t.Errorf("the script differs from nodeconfig.Script(): %v", err)
	}
}

// TestMutateFollowsTheStatus checks an update of an OperatingSystemConfig that already contains the
// script and the unit.
func TestMutateFollowsTheStatus(t *testing.T) {
	before := mutate(t, newWebhook(t, &gardencorev1beta1.Shoot{}, newExtension(status(alphaStatus+","+betaStatus))),
		newOSC(extensionsv1alpha1.OperatingSystemConfigPurposeReconcile))
	after := mutate(t, newWebhook(t, &gardencorev1beta1.Shoot{}, newExtension(status(betaStatus))), before)
	unit := extensionswebhook.UnitWithName(after.Spec.Units, nodeconfig.UnitName)
	if registries, err := nodeconfig.ParseUnit(*unit.Content); err != nil || !reflect.DeepEqual(registries, []nodeconfig.Registry{beta}) {
		t.Errorf("the unit configures %v, error %v", registries, err)
	}
	if len(after.Spec.Units) != 2 || len(after.Spec.Files) != 2 {
		t.Errorf("units = %+v, files = %+v", after.Spec.Units, after.Spec.Files)
	}
}

func TestMutateChangesNothing(t *testing.T) {
	deleting := &gardencorev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: ptr.To(metav1.Now())}}
	hibernating := &gardencorev1beta1.Shoot{Spec: gardencorev1beta1.ShootSpec{Hibernation: &gardencorev1beta1.Hibernation{Enabled: ptr.To(true)}}}
	reconcile := newOSC(extensionsv1alpha1.OperatingSystemConfigPurposeReconcile)
	oscDeleted := reconcile.DeepCopy()
	oscDeleted.DeletionTimestamp = ptr.To(metav1.Now())
	for name, test := range map[string]struct {
		shoot  *gardencorev1beta1.Shoot
		status string
		osc    *extensionsv1alpha1.OperatingSystemConfig
	}{
		"purpose provision":        {&gardencorev1beta1.Shoot{}, status(alphaStatus), newOSC(extensionsv1alpha1.OperatingSystemConfigPurposeProvision)},
		"OSC in deletion":          {&gardencorev1beta1.Shoot{}, status(alphaStatus), oscDeleted},
		"shoot in deletion":        {deleting, status(alphaStatus), reconcile},
		"hibernated shoot":         {hibernating, status(alphaStatus), reconcile},
		"shoot created hibernated": {hibernating, "", reconcile},
		"never a cache":            {&gardencorev1beta1.Shoot{}, status(""), reconcile},
	} {
		t.Run(name, func(t *testing.T) {
			got := mutate(t, newWebhook(t, test.shoot.DeepCopy(), newExtension(test.status)), test.osc.DeepCopy())
			if !reflect.DeepEqual(got.Spec, test.osc.Spec) {
				t.Errorf("the OperatingSystemConfig was changed: %+v", got.Spec)
			}
		})
	}
}

// TestMutateFailsWithoutStatus checks that the write is denied, so that gardenlet retries.
func TestMutateFailsWithoutStatus(t *testing.T) {
	for name, test := range map[string]struct {
		extensions []client.Object
		want       string
	}{
		"no extension":       {nil, "not found"},
		"no status":          {[]client.Object{newExtension("")}, "no providerStatus"},
		"undecodable status": {[]client.Object{newExtension(`{"kind":"Other"}`)}, "RegistryStatus"},
	} {
		t.Run(name, func(t *testing.T) {
			webhook := newWebhook(t, &gardencorev1beta1.Shoot{}, test.extensions...)
			response := handle(t, webhook, newOSC(extensionsv1alpha1.OperatingSystemConfigPurposeReconcile))
			if response.Allowed || !strings.Contains(response.Result.Message, test.want) {
				t.Errorf("response = %+v, want a denial that contains %q", response.Result, test.want)
			}
		})
	}
}

// TestMutateDoesNotBlockSelfHosted: Gardener v1.150 writes the OperatingSystemConfigs of a
// self-hosted shoot before its Extension, or without one, so a denial would block the shoot
// forever.
func TestMutateDoesNotBlockSelfHosted(t *testing.T) {
	shoot := &gardencorev1beta1.Shoot{Spec: gardencorev1beta1.ShootSpec{Provider: gardencorev1beta1.Provider{
		Workers: []gardencorev1beta1.Worker{{Name: "other"}, {Name: "control-plane", ControlPlane: &gardencorev1beta1.WorkerControlPlane{}}},
	}}}
	for name, test := range map[string]struct {
		extensions []client.Object
		units      int
	}{
		"no extension": {nil, 1},
		"no status":    {[]client.Object{newExtension("")}, 1},
		"a cache":      {[]client.Object{newExtension(status(alphaStatus))}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			osc := mutate(t, newWebhook(t, shoot.DeepCopy(), test.extensions...), newOSC(extensionsv1alpha1.OperatingSystemConfigPurposeReconcile))
			if len(osc.Spec.Units) != test.units || len(osc.Spec.Files) != test.units {
				t.Errorf("units = %+v, files = %+v, want %d of each", osc.Spec.Units, osc.Spec.Files, test.units)
			}
		})
	}
}

func TestNewSelectsLabelledNamespaces(t *testing.T) {
	webhook := newWebhook(t, &gardencorev1beta1.Shoot{})
	selector, err := metav1.LabelSelectorAsSelector(webhook.NamespaceSelector)
	if err != nil {
		t.Fatal(err)
	}
	if want := "extensions.gardener.cloud/registry-cache in (true)"; selector.String() != want {
		t.Errorf("the webhook selects namespaces by %q, want %q", selector, want)
	}
	if _, ok := webhook.Types[0].Obj.(*extensionsv1alpha1.OperatingSystemConfig); !ok || len(webhook.Types) != 1 {
		t.Errorf("the webhook is for %v", webhook.Types)
	}
	if webhook.Target != extensionswebhook.TargetSeed || webhook.Action != extensionswebhook.ActionMutating {
		t.Errorf("target %s, action %s", webhook.Target, webhook.Action)
	}
}
