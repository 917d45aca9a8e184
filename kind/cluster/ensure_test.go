package cluster

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestEmptyScratch(t *testing.T) {
	state := filepath.Join(t.TempDir(), "testbed")
	config := Config{Name: "a-seed", Kubeconfig: filepath.Join(state, "seed.kubeconfig")}
	for _, run := range []string{"the first", "after a killed one"} {
		t.Run(run, func(t *testing.T) {
			scratch, err := emptyScratch(config)
			if err != nil {
				t.Fatal(err)
			}
			if filepath.Dir(scratch) != state {
				t.Errorf("%s is not in the testbed's folder %s", scratch, state)
			}
			if info, err := os.Stat(scratch); err != nil || info.Mode().Perm() != 0o700 {
				t.Errorf("mode %v, %v: others may read it", info.Mode(), err)
			}
			if left, err := os.ReadDir(scratch); err != nil || len(left) > 0 {
				t.Errorf("it holds %v, %v", left, err)
			}
			if err := os.WriteFile(filepath.Join(scratch, "kubeconfig.lock"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		})
	}
	other, err := emptyScratch(Config{Name: "a-shoot", Kubeconfig: config.Kubeconfig})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(state, ".create-a-seed", "kubeconfig.lock")); err != nil || filepath.Base(other) == ".create-a-seed" {
		t.Errorf("clusters that are created at once share %s: %v", other, err)
	}
}

func TestAssess(t *testing.T) {
	names := []string{"a-control-plane", "a-worker"}
	tests := []struct {
		name  string
		found []container
		want  string
	}{
		{"nothing there", nil, absent},
		{"all running", []container{{name: "a-worker", state: "running"}, {name: "a-control-plane", state: "running"}}, ""},
		{"creation was killed", []container{{name: "a-worker", state: "running"}}, "a-control-plane is missing"},
		{"engine was stopped", []container{{name: "a-control-plane", state: "exited"}, {name: "a-worker", state: "exited"}}, "a-control-plane is exited"},
		{"never started", []container{{name: "a-control-plane", state: "running"}, {name: "a-worker", state: "created"}}, "a-worker is created"},
		{"one too many", []container{{name: "a-control-plane", state: "running"}, {name: "a-worker", state: "running"}, {name: "a-worker2", state: "running"}}, "it has 3 nodes instead of 2"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			if got := assess(tc.found, names); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestStopped(t *testing.T) {
	found := []container{{name: "b", state: "exited"}, {name: "c", state: "running"}, {name: "a", state: "created"}}
	if got, want := strings.Join(stopped(found), ", "), "a (created), b (exited)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestUnreadyNodes(t *testing.T) {
	node := func(name string, status corev1.ConditionStatus) corev1.Node {
		return corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeDiskPressure, Status: corev1.ConditionTrue}, {Type: corev1.NodeReady, Status: status}}}}
	}
	list := []corev1.Node{node("a", corev1.ConditionTrue), node("b", corev1.ConditionUnknown), node("c", corev1.ConditionFalse)}
	if got := strings.Join(unreadyNodes(list, []string{"a", "b", "c", "d"}), " "); got != "b c d" {
		t.Errorf("got %q", got)
	}
}

func TestRollout(t *testing.T) {
	key := client.ObjectKey{Namespace: "n", Name: "coredns"}
	if got := rollout(key, 3, 3, 3); got != "" {
		t.Errorf("complete one: %q", got)
	}
	for name, got := range map[string]string{"not updated": rollout(key, 3, 2, 3), "not available": rollout(key, 3, 3, 2)} {
		if got == "" {
			t.Errorf("%s: no problem found", name)
		}
	}
}

func TestAwait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := 0
		err := await(t.Context(), "the thing", time.Minute, func(context.Context) string {
			if answers++; answers < 3 {
				return "not yet"
			}
			return ""
		})
		if err != nil || answers != 3 {
			t.Errorf("asked %d times: %v", answers, err)
		}

		err = await(t.Context(), "the thing", time.Minute, func(context.Context) string { return "connection refused" })
		if err == nil || !strings.Contains(err.Error(), "wait up to 1m0s for the thing: connection refused") {
			t.Errorf("the error says too little: %v", err)
		}

		ctx, cancel := context.WithCancelCause(t.Context())
		interrupted := errors.New("interrupt signal received")
		cancel(interrupted)
		if err := await(ctx, "the thing", time.Minute, func(context.Context) string { return "not yet" }); !errors.Is(err, interrupted) {
			t.Errorf("the error does not tell why the context ended: %v", err)
		}
	})
}

// TestThaw checks that only frozen cgroups of the container change.
func TestThaw(t *testing.T) {
	root := t.TempDir()
	states := map[string][2]string{ // before and after
		"docker/abc/pods/one":    {"FROZEN\n", "THAWED"},
		"docker/abc/pods/two":    {"THAWED\n", "THAWED\n"},
		"docker/other/pods/one":  {"FROZEN\n", "FROZEN\n"},
		"docker/abc/pods/moving": {"FREEZING\n", "THAWED"},
	}
	for name, state := range states {
		folder := filepath.Join(root, name)
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, "freezer.state"), []byte(state[0]), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	thaw(root, "")
	if state, err := os.ReadFile(filepath.Join(root, "docker/abc/pods/one", "freezer.state")); err != nil || string(state) != "FROZEN\n" {
		t.Fatalf("without a container it is %q: %v", state, err)
	}
	thaw(root, "abc")
	thaw(filepath.Join(root, "nowhere"), "abc")
	for name, state := range states {
		got, err := os.ReadFile(filepath.Join(root, name, "freezer.state"))
		if err != nil || string(got) != state[1] {
			t.Errorf("%s is %q, want %q: %v", name, got, state[1], err)
		}
	}
}
