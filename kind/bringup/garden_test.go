package bringup

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/command"
	"github.com/gardener-extensions/registry-cache/kind/gardener"
	"github.com/gardener-extensions/registry-cache/kind/gardenlet"
	"github.com/gardener-extensions/registry-cache/kind/image"
	"github.com/gardener-extensions/registry-cache/kind/kindtest"
)

// TestStartGardenlet: the process outlives Up, runs the command gardenlet of this testbed, and is
// ended by its mark. If it ends by itself, the error names its log.
func TestStartGardenlet(t *testing.T) {
	prefix := fmt.Sprintf("garden-%d", os.Getpid()) // the same test may run in another process
	testbed := kindtest.New(t, kind.Options{Prefix: prefix, Garden: ptr.To(true)})
	t.Setenv("REGISTRY_CACHE_TESTBED", "") // ends the mark after the test
	if err := command.MarkChildren(prefix); err != nil {
		t.Fatal(err)
	}
	if err := testbed.StoreConfiguration(); err != nil { // creates the folder
		t.Fatal(err)
	}
	start := func(script string, renewed time.Time) error {
		t.Helper()
		program := filepath.Join(t.TempDir(), "testbed")
		if err := os.WriteFile(program, []byte("#!/bin/sh\n"+script), 0o755); err != nil {
			t.Fatal(err)
		}
		testbed.Images = image.Set{kind.ProgramTestbed: image.Built{Executable: program}}
		testbed.Gardenlet = &gardenlet.Gardenlet{Garden: gardener.NewGarden(&coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: gardencorev1beta1.GardenerSeedLeaseNamespace, Name: gardener.SeedName},
			Spec:       coordinationv1.LeaseSpec{RenewTime: ptr.To(metav1.NewMicroTime(renewed))},
		})}
		return startGardenlet(t.Context(), testbed)
	}

	if err := start("exit 3", time.Now().Add(-time.Hour)); err == nil || !strings.Contains(err.Error(), "exit status 3") ||
		!strings.Contains(err.Error(), "gardenlet.log") {
		t.Errorf("a process that ends: error %v", err)
	}
	if err := start(`echo "$@"; exec sleep 60`, time.Now().Add(time.Hour)); err != nil {
		t.Errorf("a process that runs: %v", err)
	}
	want, log := "gardenlet --prefix "+prefix+"\n", []byte{}
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, 10*time.Second, true, func(context.Context) (done bool, err error) {
		log, err = os.ReadFile(testbed.State.GardenletLog())
		return string(log) == want, err // the process may not have written yet
	})
	if err != nil {
		t.Errorf("arguments %q, want %q: %v", log, want, err)
	}
	if count, err := command.EndMarked(t.Context(), prefix); err != nil || count != 1 {
		t.Errorf("%d processes were ended, error %v", count, err)
	}
}
