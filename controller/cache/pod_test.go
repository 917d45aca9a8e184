package cache

import (
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	selectors "k8s.io/apimachinery/pkg/labels"
	podsecurity "k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	"github.com/gardener/gardener/pkg/resourcemanager/controller/garbagecollector/references"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

// TestPodsAreRestricted uses the library with which the API server enforces pod security.
func TestPodsAreRestricted(t *testing.T) {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	restricted := podsecurity.LevelVersion{Level: podsecurity.LevelRestricted, Version: podsecurity.LatestVersion()}
	for name, rendering := range renderings() {
		t.Run(name, func(t *testing.T) {
			template := rendering.statefulSet(t).Spec.Template
			for _, result := range evaluator.EvaluatePod(restricted, &template.ObjectMeta, &template.Spec) {
				if !result.Allowed {
					t.Errorf("%s: %s", result.ForbiddenReason, result.ForbiddenDetail)
				}
			}
			if !*template.Spec.Containers[0].SecurityContext.ReadOnlyRootFilesystem || *template.Spec.AutomountServiceAccountToken {
				t.Error("the root file system can be written to, or there is a token of a service account")
			}
		})
	}
}

// TestWhatRollsThePods: a change that the running registry does not reload must change the pod
// template.
func TestWhatRollsThePods(t *testing.T) {
	for name, change := range map[string]func(*rendering){
		"time to live": func(r *rendering) {
			r.cache.GarbageCollection = &v1alpha3.GarbageCollection{}
			r.cache.GarbageCollection.TTL.Duration = time.Hour
		},
		"password":    func(r *rendering) { r.secrets.Credentials = &Credentials{credentials.Username, []byte("new")} },
		"certificate": func(r *rendering) { r.secrets.Certificate = &Certificate{[]byte("new"), certificate.PrivateKey} },
		"key":         func(r *rendering) { r.secrets.Certificate = &Certificate{certificate.Certificate, []byte("new")} },
		"CA bundle":   func(r *rendering) { r.secrets.CABundle = append(slices.Clone(caBundle), caBundle...) },
		"proxy":       func(r *rendering) { r.cache.Proxy = nil },
		"networks":    func(r *rendering) { r.shoot.Networks = nil },
		"TLS":         func(r *rendering) { r.cache.HTTP = nil },
	} {
		t.Run(name, func(t *testing.T) {
			r := renderings()["everything"]
			before := r.statefulSet(t).Spec.Template
			if !equality.Semantic.DeepEqual(before, r.statefulSet(t).Spec.Template) {
				t.Fatal("rendering the pod template twice gives different results")
			}
			change(&r)
			if equality.Semantic.DeepEqual(before, r.statefulSet(t).Spec.Template) {
				t.Error("the pod template has not changed")
			}
		})
	}
}

// TestReferencesKeepTheFiles: gardener-resource-manager deletes immutable Secrets and ConfigMaps
// that no annotation references (gardener-extension-registry-cache#363).
func TestReferencesKeepTheFiles(t *testing.T) {
	objects := renderings()["everything"].render(t)
	set := get[*appsv1.StatefulSet](t, objects)
	found := 0
	for _, object := range objects {
		if object.GetLabels()[references.LabelKeyGarbageCollectable] == "" {
			continue
		}
		found++
		for _, annotations := range []map[string]string{set.Annotations, set.Spec.Template.Annotations} {
			if !slices.ContainsFunc(mapValues(annotations), func(value string) bool { return value == object.GetName() }) {
				t.Errorf("no annotation refers to %T %s", object, object.GetName())
			}
		}
	}
	if found != 3 {
		t.Errorf("%d objects with files, want 3: configuration, certificate, CA bundle", found)
	}
}

func mapValues(m map[string]string) []string {
	values := make([]string, 0, len(m))
	for _, value := range m {
		values = append(values, value)
	}
	return values
}

// TestUpgradeKeepsTheVolume: these fields of a StatefulSet are immutable, or determine the name and
// owner of the volume. They must be the same as in gardener-extension-registry-cache.
func TestUpgradeKeepsTheVolume(t *testing.T) {
	for name, rendering := range renderings() {
		t.Run(name, func(t *testing.T) {
			set, id := rendering.statefulSet(t), rendering.identity()
			if set.Name != id.Name || set.Spec.ServiceName != "" {
				t.Errorf("the StatefulSet is %s with the service name %q, want %s without one", set.Name, set.Spec.ServiceName, id.Name)
			}
			if got := set.Spec.Selector.MatchLabels; len(got) != 2 || got["app"] != id.Name || got["upstream-host"] != id.HostLabel {
				t.Errorf("the selector is %v", got)
			}
			if len(set.Spec.VolumeClaimTemplates) != 1 || set.Spec.VolumeClaimTemplates[0].Name != "cache-volume" {
				t.Errorf("the claim templates are %v", set.Spec.VolumeClaimTemplates)
			}
			if mount := set.Spec.Template.Spec.Containers[0].VolumeMounts[0]; mount.Name != "cache-volume" || mount.MountPath != "/var/lib/registry" {
				t.Errorf("the volume is mounted as %v", mount)
			}
			security := set.Spec.Template.Spec.SecurityContext
			if *security.FSGroup != 65532 || *security.RunAsUser != 65532 || *security.FSGroupChangePolicy != corev1.FSGroupChangeOnRootMismatch {
				t.Errorf("the security context is %v", security)
			}
			if set.Annotations["resources.gardener.cloud/delete-on-invalid-update"] != "true" {
				t.Error("a StatefulSet with podManagementPolicy OrderedReady could not be replaced")
			}
		})
	}
}

// TestWhoReachesThePods: the policy and the Service select the pods, and open the registry port and
// the health port, whose number is also in the script.
func TestWhoReachesThePods(t *testing.T) {
	for name, rendering := range renderings() {
		t.Run(name, func(t *testing.T) {
			objects := rendering.render(t)
			pods := selectors.Set(get[*appsv1.StatefulSet](t, objects).Spec.Template.Labels)
			service, policy := get[*corev1.Service](t, objects), get[*networkingv1.NetworkPolicy](t, objects)
			if !selectors.SelectorFromSet(service.Spec.Selector).Matches(pods) || !selectors.SelectorFromSet(policy.Spec.PodSelector.MatchLabels).Matches(pods) {
				t.Error("the pods are not selected")
			}
			var open, served []int32
			for _, port := range policy.Spec.Ingress[0].Ports {
				open = append(open, port.Port.IntVal)
			}
			for _, port := range service.Spec.Ports {
				served = append(served, port.Port)
			}
			if want := []int32{5000, 5001}; len(policy.Spec.Ingress) != 1 || len(policy.Spec.Ingress[0].From) != 0 ||
				!slices.Equal(open, want) || !slices.Equal(served, want) {
				t.Errorf("the policy lets in %v, and the Service has ports %v", policy.Spec.Ingress, served)
			}
			for _, label := range []string{"to-dns", "to-public-networks", "from-seed"} {
				if pods["networking.gardener.cloud/"+label] != "allowed" {
					t.Errorf("the pods lack the label networking.gardener.cloud/%s", label)
				}
			}
		})
	}
}

func TestNoProxy(t *testing.T) {
	const always = "localhost,127.0.0.1,::1,kubernetes.default,.svc,.cluster.local"
	for name, test := range map[string]struct {
		users    string
		networks []string
		want     string
	}{
		"nothing given":   {"", nil, always},
		"networks first":  {"corp.example", []string{"10.0.0.0/8", "fd00::/8"}, "10.0.0.0/8,fd00::/8," + always + ",corp.example"},
		"blanks, doubles": {" a.example , .svc,a.example", nil, always + ",a.example"},
		"everything":      {"*", nil, always + ",*"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := noProxy(v1alpha3.NoProxyEntries(&v1alpha3.Proxy{NoProxy: &test.users}), test.networks); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// TestEnvironmentIsNoConfiguration: distribution reads every variable that starts with REGISTRY_ as
// configuration.
func TestEnvironmentIsNoConfiguration(t *testing.T) {
	template := renderings()["everything"].statefulSet(t).Spec.Template.Spec
	if *template.EnableServiceLinks {
		t.Error("EnableServiceLinks is true, want false")
	}
	for _, variable := range template.Containers[0].Env {
		if strings.HasPrefix(variable.Name, "REGISTRY") {
			t.Errorf("%s is configuration", variable.Name)
		}
	}
}
