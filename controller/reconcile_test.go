package controller

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1beta1helper "github.com/gardener/gardener/pkg/api/core/v1beta1/helper"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
)

// TestReconcile checks all writes to the seed, in order.
func TestReconcile(t *testing.T) {
	for name, test := range map[string]struct {
		wanted, running []string
		shoot           []func(*gardencorev1beta1.Shoot)
		leftover        []client.Object
		log             []string
		upstreams       []string
	}{
		"first": {
			wanted: []string{alpha, beta},
			log: []string{
				"status []", "apply extension-registry-cache-services", "apply extension-registry-cache", "status [alpha.upstream.test beta.upstream.test]",
			},
			upstreams: []string{alpha, beta},
		},
		"upstream removed": {
			wanted: []string{beta}, running: []string{alpha, beta},
			log: []string{
				"status [alpha.upstream.test beta.upstream.test]", "apply extension-registry-cleaner", "delete extension-registry-cleaner", "status [beta.upstream.test]",
				"apply extension-registry-cache-services", "apply extension-registry-cache", "status [beta.upstream.test]",
			},
			upstreams: []string{beta},
		},
		"upstream replaced": {
			wanted: []string{beta}, running: []string{alpha},
			log: []string{
				"status [alpha.upstream.test]", "apply extension-registry-cleaner", "delete extension-registry-cleaner", "status []", "status []",
				"apply extension-registry-cache-services", "apply extension-registry-cache", "status [beta.upstream.test]",
			},
			upstreams: []string{beta},
		},
		"removal reverted while the cleaner ran": {
			wanted: []string{alpha}, running: []string{alpha},
			leftover:  []client.Object{managedResource(cleanerName)},
			log:       []string{"delete extension-registry-cleaner", "apply extension-registry-cache-services", "apply extension-registry-cache", "status [alpha.upstream.test]"},
			upstreams: []string{alpha},
		},
		"upstream removed while hibernation starts": {
			wanted: []string{beta}, running: []string{alpha, beta},
			shoot: []func(*gardencorev1beta1.Shoot){hibernating},
			log: []string{
				"status [alpha.upstream.test beta.upstream.test]", "apply extension-registry-cleaner", "delete extension-registry-cleaner", "status [beta.upstream.test]",
				"apply extension-registry-cache-services", "apply extension-registry-cache", "status [beta.upstream.test]",
			},
			upstreams: []string{beta},
		},
		"upstream removed while hibernated": {
			wanted: []string{beta}, running: []string{alpha, beta},
			shoot:     []func(*gardencorev1beta1.Shoot){hibernated},
			log:       []string{"status [beta.upstream.test]", "apply extension-registry-cache-services", "apply extension-registry-cache", "status [beta.upstream.test]"},
			upstreams: []string{beta},
		},
		"upstream removed while the shoot is deleted": {
			wanted: []string{beta}, running: []string{alpha, beta},
			shoot: []func(*gardencorev1beta1.Shoot){deleting},
			log: []string{
				"status [beta.upstream.test]", "apply extension-registry-cache-services", "apply extension-registry-cache", "status [beta.upstream.test]",
			},
			upstreams: []string{beta},
		},
	} {
		t.Run(name, func(t *testing.T) {
			objects := append(test.leftover, newExtension(test.wanted, test.running), cluster(test.shoot...))
			l := newLandscape(t, objects...)
			if err := l.reconcile(t); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(l.log, test.log) {
				t.Errorf("writes:\n  %s\nwant:\n  %s", strings.Join(l.log, "\n  "), strings.Join(test.log, "\n  "))
			}
			if got := upstreamsOf(l.extension(t)); !slices.Equal(got, test.upstreams) {
				t.Errorf("status has %v, want %v", got, test.upstreams)
			}
			if l.exists(t, cleanerName) {
				t.Error("the cleaner is still there")
			}
		})
	}
}

func TestReconcileReportsServices(t *testing.T) {
	l := newLandscape(t, newExtension([]string{alpha, beta}, nil), cluster())
	if err := l.reconcile(t); err != nil {
		t.Fatal(err)
	}
	status, err := recordOf(l.extension(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, got := range status.status.Caches {
		service := &corev1.Service{}
		if err := l.shoot.Get(t.Context(), client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: idOf(got.Upstream).Name}, service); err != nil {
			t.Fatal(err)
		}
		if want := "http://" + service.Spec.ClusterIP + ":5000"; got.Endpoint != want {
			t.Errorf("endpoint of %s = %s, want %s", got.Upstream, got.Endpoint, want)
		}
		if want := "https://" + got.Upstream; got.RemoteURL != want {
			t.Errorf("remoteURL of %s = %s, want %s", got.Upstream, got.RemoteURL, want)
		}
	}
}

// TestReconcileKeepsTheCachesUntilNodesAreClean: no node may keep a mirror of a removed cache.
func TestReconcileKeepsTheCachesUntilNodesAreClean(t *testing.T) {
	l := newLandscape(t, newExtension([]string{beta}, []string{alpha, beta}), cluster())
	l.noCleaner = "ImagePullBackOff"
	err := l.reconcile(t)
	if want := "worker-1 (pod registry-cleaner-worker-1: ImagePullBackOff)"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error = %v, want it to contain %q", err, want)
	}
	if slices.Contains(l.log, "apply extension-registry-cache") {
		t.Errorf("the caches were changed: %v", l.log)
	}
	if got := upstreamsOf(l.extension(t)); !slices.Equal(got, []string{alpha, beta}) {
		t.Errorf("status has %v", got)
	}
	l.noCleaner = ""
	l.resync(t, cleanerName)
	if err := l.reconcile(t); err != nil {
		t.Errorf("the retry failed: %v", err)
	}
	if got := upstreamsOf(l.extension(t)); !slices.Equal(got, []string{beta}) {
		t.Errorf("after the retry status has %v", got)
	}
}

func TestReconcileWaitsForTheCleanerToGo(t *testing.T) {
	l := newLandscape(t, newExtension([]string{alpha}, []string{alpha}), cluster(), managedResource(cleanerName, "test/stays"))
	err := l.reconcile(t)
	if err == nil || !strings.Contains(err.Error(), cleanerName) {
		t.Errorf("error = %v, want it to name %s", err, cleanerName)
	}
	if slices.Contains(l.log, "apply extension-registry-cache") {
		t.Errorf("the caches were changed: %v", l.log)
	}
}

// TestReconcileRemovesTheCleanerMeanwhile checks that the cleaner is deleted while the caches are
// deployed, and that every reconciliation, even a retry, waits for that deletion.
func TestReconcileRemovesTheCleanerMeanwhile(t *testing.T) {
	l := newLandscape(t, newExtension([]string{beta}, []string{alpha, beta}), cluster())
	l.finalizer = "test/stays"
	for range 2 {
		if err := l.reconcile(t); err == nil || !strings.Contains(err.Error(), cleanerName) {
			t.Errorf("error = %v, want it to name %s", err, cleanerName)
		}
	}
	if cleaned := strings.Count(strings.Join(l.log, "\n"), "apply "+cleanerName); cleaned != 1 {
		t.Errorf("the nodes were cleaned %d times: %v", cleaned, l.log)
	}
	deleted, applied := slices.Index(l.log, "delete "+cleanerName), slices.Index(l.log, "apply "+cachesName)
	if deleted < 0 || applied < deleted {
		t.Errorf("the caches were not deployed after the deletion of the cleaner began: %v", l.log)
	}
}

// TestReconcileIgnoresPreviousService: the Service of a removed cache may still exist when the
// upstream gets a new cache. The Service will be deleted, so it must not be reported.
func TestReconcileIgnoresPreviousService(t *testing.T) {
	for name, test := range map[string]struct {
		running []string
		fails   bool
	}{
		"new cache":     {[]string{beta}, true},
		"no new caches": {[]string{alpha, beta}, false},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLandscape(t, newExtension([]string{alpha, beta}, test.running), cluster())
			l.behind = true
			err := l.reconcile(t)
			if failed := err != nil && strings.Contains(err.Error(), "wait for gardener-resource-manager"); failed != test.fails {
				t.Errorf("error = %v", err)
			}
		})
	}
}

func TestReconcileWritesTheCaches(t *testing.T) {
	l := newLandscape(t, newExtension([]string{alpha}, nil), cluster())
	if err := l.reconcile(t); err != nil {
		t.Fatal(err)
	}
	mr, err := l.actuator.managedResource(t.Context(), namespace, cachesName)
	if err != nil {
		t.Fatal(err)
	}
	if !ptr.Deref(mr.Spec.DeletePersistentVolumeClaims, false) {
		t.Error("the volumes of removed caches would stay")
	}
	if ptr.Deref(mr.Spec.KeepObjects, true) || mr.Spec.Class != nil {
		t.Errorf("keepObjects = %v, class = %v", mr.Spec.KeepObjects, mr.Spec.Class)
	}
	if got := mr.Labels["origin"]; got != "registry-cache" {
		t.Errorf("origin = %q", got)
	}
}

func TestReconcileWithoutEndpoint(t *testing.T) {
	l := newLandscape(t, newExtension([]string{alpha, beta}, nil), cluster())
	l.applyError = `services "registry-alpha-upstream-test" is forbidden: exceeded quota`
	err := l.reconcile(t)
	for _, want := range []string{alpha, beta, l.applyError} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error = %v, want it to contain %q", err, want)
		}
	}
	if got := l.extension(t).Status.ProviderStatus; got != nil {
		t.Errorf("status = %s", got.Raw)
	}
}

// TestServicesStay checks that Services that cannot be changed cause no failure while every cache
// has one. gardenlet reports the ManagedResource.
func TestServicesStay(t *testing.T) {
	l := newLandscape(t, newExtension([]string{alpha}, nil), cluster())
	if err := l.reconcile(t); err != nil {
		t.Fatal(err)
	}
	l.applyError = "updates to services are forbidden"
	ex := l.extension(t)
	ex.Spec.ProviderConfig.Raw = []byte(strings.Replace(string(ex.Spec.ProviderConfig.Raw), `"upstream"`, `"remoteURL":"https://other.test","upstream"`, 1))
	if err := l.seed.Update(t.Context(), ex); err != nil {
		t.Fatal(err)
	}
	if err := l.reconcile(t); err != nil {
		t.Error(err)
	}
}

func TestReconcileRejectsInvalidConfig(t *testing.T) {
	const head = `{"apiVersion":"registry.extensions.gardener.cloud/v1alpha3","kind":"RegistryConfig",`
	for name, test := range map[string]struct{ config, path string }{
		"unknown field":        {head + `"caches":[{"upstream":"a.test","size":"1Gi"}]}`, "caches[0].size"},
		"no caches":            {head + `"caches":[]}`, "caches"},
		"duplicate upstream":   {head + `"caches":[{"upstream":"a.test"},{"upstream":"a.test"}]}`, "caches[1].upstream"},
		"upstream with scheme": {head + `"caches":[{"upstream":"https://a.test"}]}`, "caches[0].upstream"},
		"bad ttl":              {head + `"caches":[{"upstream":"a.test","garbageCollection":{"ttl":"-1h"}}]}`, "caches[0].garbageCollection.ttl"},
		"a version of 2023": {`{"apiVersion":"registry.extensions.gardener.cloud/v1alpha2","kind":"RegistryConfig","caches":[{"upstream":"a.test"}]}`,
			"apiVersion: Invalid value: \"registry.extensions.gardener.cloud/v1alpha2\": is no longer supported: write registry.extensions.gardener.cloud/v1alpha3, volume.size"},
		"ttl of a wrong type": {head + `"caches":[{"upstream":"a.test","garbageCollection":{"ttl":"often"}}]}`, "caches[0].garbageCollection.ttl"},
	} {
		t.Run(name, func(t *testing.T) {
			ex := rawExtension([]byte(test.config))
			ex.Status.ProviderStatus = newExtension(nil, []string{alpha}).Status.ProviderStatus
			l := newLandscape(t, ex, cluster())
			err := l.reconcile(t)
			if err == nil || !strings.Contains(err.Error(), test.path) {
				t.Errorf("error = %v, want it to name %s", err, test.path)
			}
			if codes := v1beta1helper.ExtractErrorCodes(err); !slices.Contains(codes, gardencorev1beta1.ErrorConfigurationProblem) {
				t.Errorf("codes = %v", codes)
			}
			if len(l.log) > 0 {
				t.Errorf("something was written: %v", l.log)
			}
		})
	}
}

// TestReconcileWithoutConfig: a seed can enable the extension for all of its Shoots. One without a
// providerConfig has no caches, even if it had some before.
func TestReconcileWithoutConfig(t *testing.T) {
	for name, test := range map[string]struct {
		config      *runtime.RawExtension
		running     []string
		leftover    []client.Object
		shoot       []func(*gardencorev1beta1.Shoot)
		first, next []string
	}{
		"never a cache":  {nil, nil, nil, nil, []string{"status []"}, nil},
		"null":           {&runtime.RawExtension{Raw: []byte("null")}, nil, nil, nil, []string{"status []"}, nil},
		"created asleep": {nil, nil, nil, []func(*gardencorev1beta1.Shoot){hibernated}, []string{"status []"}, nil},
		"a lost status": {nil, nil, []client.Object{managedResource(servicesName), managedResource(cachesName)}, nil,
			[]string{"delete extension-registry-cache", "delete extension-registry-cache-services", "status []"}, nil},
		"caches removed": {nil, []string{alpha, beta}, nil, nil,
			[]string{"status [alpha.upstream.test beta.upstream.test]", "apply extension-registry-cleaner", "delete extension-registry-cleaner", "status []",
				"apply extension-registry-cache-services", "apply extension-registry-cache", "status []"},
			[]string{"delete extension-registry-cache", "delete extension-registry-cache-services"}},
	} {
		t.Run(name, func(t *testing.T) {
			ex := newExtension(nil, test.running)
			ex.Spec.ProviderConfig = test.config
			l := newLandscape(t, append(test.leftover, ex, cluster(test.shoot...), managedResource(monitoringName))...)
			for _, want := range [][]string{test.first, test.next, nil} {
				l.log = nil
				if err := l.reconcile(t); err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(l.log, want) {
					t.Errorf("writes:\n  %s\nwant:\n  %s", strings.Join(l.log, "\n  "), strings.Join(want, "\n  "))
				}
			}
			if l.exists(t, monitoringName) || l.exists(t, cachesName) {
				t.Error("something is still deployed")
			}
			if got := upstreamsOf(l.extension(t)); len(got) > 0 || l.extension(t).Status.ProviderStatus == nil {
				t.Errorf("the status lists %v, or is missing", got)
			}
		})
	}
}
