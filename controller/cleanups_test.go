package controller

import (
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

// expectCleanUps checks the number of clean-ups in the state, which the webhook reads.
func (l *landscape) expectCleanUps(t *testing.T, want string, upstreams ...string) {
	t.Helper()
	ex := l.extension(t)
	if ex.Status.State == nil {
		t.Fatal("the Extension has no state")
	}
	if raw := string(ex.Status.State.Raw); !strings.Contains(raw, want) || want == "" && strings.Contains(raw, "cleanUps") {
		t.Errorf("the state does not contain %q: %s", want, raw)
	}
	if got := upstreamsOf(ex); !slices.Equal(got, upstreams) {
		t.Errorf("status has %v, want %v", got, upstreams)
	}
}

// TestRevertedRemoval checks a removal that is reverted when only some nodes are clean. The Service
// has not changed, so only the number changes the OperatingSystemConfig.
func TestRevertedRemoval(t *testing.T) {
	remove := func(c *v1alpha3.RegistryConfig) { c.Caches = c.Caches[:1] }
	l, _ := newRunningLandscape(t, nil)
	l.expectCleanUps(t, "", alpha, beta)
	l.configure(t, remove)
	l.noCleaner = "ImagePullBackOff"
	for range 2 { // the second attempt resumes the same clean-up
		if err := l.reconcile(t); err == nil {
			t.Fatal("no error although no node was cleaned")
		}
		l.expectCleanUps(t, `"cleanUps":1`, alpha, beta)
	}
	l.configure(t, func(c *v1alpha3.RegistryConfig) {
		c.Caches = append(c.Caches, v1alpha3.RegistryCache{Upstream: beta})
	})
	if err := l.reconcile(t); err != nil {
		t.Fatal(err)
	}
	l.expectCleanUps(t, `"cleanUps":1`, alpha, beta)

	l.configure(t, remove)
	if err := l.reconcile(t); err == nil {
		t.Fatal("no error although no node was cleaned")
	}
	l.expectCleanUps(t, `"cleanUps":2`, alpha, beta)
	l.noCleaner = ""
	l.resync(t, cleanerName)
	if err := l.reconcile(t); err != nil {
		t.Fatal(err)
	}
	l.expectCleanUps(t, `"cleanUps":2`, alpha)
}

// TestCleanUpsSurviveMigration matters because the previous seed may have cleaned nodes.
func TestCleanUpsSurviveMigration(t *testing.T) {
	l, _ := newRunningLandscape(t, func(c *v1alpha3.RegistryConfig) { c.Caches = c.Caches[:1] })
	l.noCleaner = "ImagePullBackOff"
	if err := l.reconcile(t); err == nil {
		t.Fatal("no error although no node was cleaned")
	}
	if err := l.actuator.Migrate(t.Context(), logr.Discard(), l.extension(t)); err != nil {
		t.Fatal(err)
	}
	ex := l.extension(t)
	ex.Status.ProviderStatus = nil
	if err := l.seed.Status().Update(t.Context(), ex); err != nil {
		t.Fatal(err)
	}
	l.configure(t, func(c *v1alpha3.RegistryConfig) {
		c.Caches = append(c.Caches, v1alpha3.RegistryCache{Upstream: beta})
	})
	if err := l.actuator.Restore(t.Context(), logr.Discard(), l.extension(t)); err != nil {
		t.Fatal(err)
	}
	l.expectCleanUps(t, `"cleanUps":1`, alpha, beta)
}

// TestStateWithoutConfig checks a status of a version that had no state.
func TestStateWithoutConfig(t *testing.T) {
	l := newLandscape(t, newExtension([]string{alpha}, []string{alpha, beta}), cluster())
	l.noCleaner = "ImagePullBackOff"
	if err := l.reconcile(t); err == nil {
		t.Fatal("no error although no node was cleaned")
	}
	l.expectCleanUps(t, `{"cleanUps":1}`, alpha, beta)
	r, err := recordOf(l.extension(t))
	if err != nil || r.applied != nil {
		t.Errorf("a config was applied: %v, %v", r.applied, err)
	}
}
