package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	v1beta1helper "github.com/gardener/gardener/pkg/api/core/v1beta1/helper"
	"github.com/gardener/gardener/pkg/utils/managedresources"
	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/controller/cleaner"
	"github.com/gardener-extensions/registry-cache/controller/retry"
)

func worker(name string, ready bool) *corev1.Node {
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status}}},
	}
}

// noPod is the reason why the cleaner's pods cannot be created.
const noPod = "FailedCreate"

// runCleaner acts as DaemonSet controller, garbage collector and kubelets.
func (l *landscape) runCleaner(ctx context.Context) error {
	inKubeSystem := client.InNamespace(metav1.NamespaceSystem)
	if err := l.shoot.DeleteAllOf(ctx, &corev1.Pod{}, inKubeSystem, client.MatchingLabels(cleaner.Labels())); err != nil {
		return err
	}
	set, nodes := &appsv1.DaemonSet{}, &corev1.NodeList{}
	if err := l.shoot.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: v1alpha3.CleanerDaemonSet}, set); err != nil {
		return client.IgnoreNotFound(err)
	}
	if err := l.shoot.List(ctx, nodes); err != nil {
		return err
	}
	if set.UID == "" {
		set.UID = v1alpha3.CleanerDaemonSet
		if err := l.shoot.Update(ctx, set); err != nil {
			return err
		}
	}
	set.Status = appsv1.DaemonSetStatus{}
	for _, node := range nodes.Items {
		if l.noCleaner == noPod {
			continue
		}
		pod := l.cleanerPod(set, node.Name)
		set.Status.DesiredNumberScheduled++
		set.Status.UpdatedNumberScheduled++
		if node.Status.Conditions[0].Status == corev1.ConditionFalse {
			pod.Status = corev1.PodStatus{}
		} else if l.noCleaner == "" {
			set.Status.NumberReady++
			if l.cleaned != nil {
				l.cleaned(node.Name, set.Spec.Template.Spec.InitContainers[0].Args)
			}
		}
		if err := l.shoot.Create(ctx, pod); err != nil {
			return err
		}
	}
	return l.shoot.Status().Update(ctx, set)
}

func (l *landscape) cleanerPod(set *appsv1.DaemonSet, node string) *corev1.Pod {
	state := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
	if l.noCleaner != "" {
		state = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: l.noCleaner}}
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name:              v1alpha3.CleanerDaemonSet + "-" + node,
			Namespace:         set.Namespace,
			Labels:            set.Spec.Template.Labels,
			CreationTimestamp: metav1.Now(),
			OwnerReferences:   []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("DaemonSet"))},
		},
		Spec:   *set.Spec.Template.Spec.DeepCopy(),
		Status: corev1.PodStatus{InitContainerStatuses: []corev1.ContainerStatus{{Name: "clean", State: state}}},
	}
	pod.Spec.NodeName = node
	return pod
}

// TestBrokenNodeIsSkipped checks that a node that is not ready is skipped, and that the log names
// it.
func TestBrokenNodeIsSkipped(t *testing.T) {
	for name, act := range map[string]func(*landscape, *strings.Builder) error{
		"upstream removed": func(l *landscape, logged *strings.Builder) error {
			return l.actuator.Reconcile(t.Context(), logTo(logged), l.extension(t))
		},
		"disabled": func(l *landscape, logged *strings.Builder) error {
			return l.actuator.Delete(t.Context(), logTo(logged), l.extension(t))
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLandscape(t, newExtension([]string{beta}, []string{alpha, beta}), cluster(), managedResource(cachesName))
			l.actuator.waits.skipAfter = 0
			if err := l.shoot.Create(t.Context(), worker("broken", false)); err != nil {
				t.Fatal(err)
			}
			var logged strings.Builder
			told := l.recordEvents()
			if err := act(l, &logged); err != nil {
				t.Fatal(err)
			}
			assertEvents(t, told, "Warning NodesSkipped The last clean-up of removed caches skipped nodes: broken (the node is not ready)")
			if !slices.Contains(l.log, "apply "+cleanerName) {
				t.Errorf("nothing was cleaned: %v", l.log)
			}
			if !strings.Contains(logged.String(), `"nodes"=["broken (the node is not ready)"]`) {
				t.Errorf("the log does not name the node:\n%s", &logged)
			}
		})
	}
}

func logTo(logged *strings.Builder) logr.Logger {
	return funcr.New(func(_, args string) { logged.WriteString(args + "\n") }, funcr.Options{})
}

// TestBrokenNodeGetsTime checks that the cleaner waits for a node that just became unready, because
// it may be restarting.
func TestBrokenNodeGetsTime(t *testing.T) {
	for name, test := range map[string]struct {
		quiet  time.Duration
		waited bool
	}{"just now": {0, true}, "a while ago": {50 * time.Second, true}, "long ago": {70 * time.Second, false}} {
		t.Run(name, func(t *testing.T) {
			l := newLandscape(t, newExtension([]string{beta}, []string{alpha, beta}), cluster())
			for _, node := range []*corev1.Node{worker("down", false), worker("broken", false)} {
				node.CreationTimestamp = metav1.NewTime(time.Now().Add(-200 * time.Hour))
				node.Status.Conditions[0].LastTransitionTime = metav1.NewTime(time.Now().Add(-100 * time.Hour))
				if node.Name == "broken" {
					node.Status.Conditions[0].LastTransitionTime = metav1.NewTime(time.Now().Add(-test.quiet))
				}
				if err := l.shoot.Create(t.Context(), node); err != nil {
					t.Fatal(err)
				}
			}
			err := l.reconcile(t)
			if want := "broken (the node is not ready)"; test.waited && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("error = %v, want it to contain %q", err, want)
			}
			if !test.waited && err != nil {
				t.Errorf("a node that is down was waited for: %v", err)
			}
		})
	}
}

// TestStuckNodeIsSkipped checks that a ready node that cannot start the cleaner is skipped a minute
// after the cleaner started. Attempts share this minute, even if no pod can be created.
func TestStuckNodeIsSkipped(t *testing.T) {
	for name, test := range map[string]struct{ reason, want string }{
		"no image": {"ImagePullBackOff", "worker-1 (pod registry-cleaner-worker-1: ImagePullBackOff)"},
		"no pod":   {noPod, "worker-1 (no cleaner pod yet)"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLandscape(t, newExtension([]string{beta}, []string{alpha, beta}), cluster())
				l.actuator.waits = defaultTiming()
				l.noCleaner = test.reason
				started := time.Now()
				for l.actuator.clock.Since(started) < time.Minute {
					if err := l.reconcile(t); err == nil || !strings.Contains(err.Error(), test.want) {
						t.Fatalf("after %s: error = %v, want it to contain %q", time.Since(started), err, test.want)
					}
					<-time.After(l.delay(t, retry.InProgress))
				}
				if err := l.reconcile(t); err != nil {
					t.Fatal(err)
				}
				condition := v1beta1helper.GetCondition(l.extension(t).Status.Conditions, v1alpha3.ConditionNodesCleaned)
				if took := time.Since(started); took > 70*time.Second || condition == nil || !strings.Contains(condition.Message, test.want) {
					t.Errorf("after %s: condition %+v", took, condition)
				}
			})
		})
	}
}

// TestForbiddenCleanerIsSkipped checks that a cleaner that the shoot refuses, such as by a policy,
// blocks a removal for only a minute.
func TestForbiddenCleanerIsSkipped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLandscape(t, newExtension([]string{beta}, []string{alpha, beta}), cluster())
		l.actuator.waits = defaultTiming()
		l.applyError, l.refusedKind = "a policy forbids hostPath", "DaemonSet"
		started := time.Now()
		for time.Since(started) < time.Minute {
			if err := l.reconcile(t); err == nil {
				t.Fatalf("after %s: no error although no node is clean", time.Since(started))
			}
			<-time.After(l.delay(t, retry.InProgress))
		}
		l.reconciled(t)
		condition := v1beta1helper.GetCondition(l.extension(t).Status.Conditions, v1alpha3.ConditionNodesCleaned)
		if condition == nil || !strings.Contains(condition.Message, "worker-1 (no cleaner pod yet)") {
			t.Errorf("condition %+v", condition)
		}
	})
}

// TestOldCleanerSecret checks that the Secret of an earlier clean-up does not make the next one
// skip nodes at once.
func TestOldCleanerSecret(t *testing.T) {
	l, _ := newRunningLandscape(t, func(c *v1alpha3.RegistryConfig) { c.Caches = c.Caches[1:] })
	set := cleaner.DaemonSet(cleaner.Task{Upstreams: []string{alpha}}, "cleaner:v1")
	data, err := encodeManifests(shootEncoder, []client.Object{set})
	if err != nil {
		t.Fatal(err)
	}
	name, secret := managedresources.NewSecret(l.unwatched, namespace, cleanerName, data, true)
	if err := secret.Reconcile(t.Context()); err != nil {
		t.Fatal(err)
	}
	old := &corev1.Secret{}
	if err := l.unwatched.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, old); err != nil {
		t.Fatal(err)
	}
	old.CreationTimestamp = metav1.NewTime(time.Now().Add(-5 * time.Minute))
	if err := l.unwatched.Update(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	l.behind, l.applyError, l.refusedKind = true, "not yet", "DaemonSet"
	if err := l.reconcile(t); !retry.IsWaiting(err) {
		t.Errorf("error = %v, conditions %v", err, l.extension(t).Status.Conditions)
	}
}

// TestCleaningReadsLittle limits the reads of nodes and pods, of which a shoot may have a thousand
// each.
func TestCleaningReadsLittle(t *testing.T) { synctest.Test(t, testCleaningReadsLittle) }

func testCleaningReadsLittle(t *testing.T) {
	l := newLandscape(t, newExtension([]string{beta}, []string{alpha, beta}), cluster())
	l.actuator.waits = defaultTiming()
	for i := range smallShoot { // plus worker-1
		if err := l.shoot.Create(t.Context(), worker(fmt.Sprint("more-", i), true)); err != nil {
			t.Fatal(err)
		}
	}
	w := l.tap()
	l.noCleaner = "ContainerCreating"
	for started := time.Now(); time.Since(started) < 40*time.Second; <-time.After(l.delay(t, retry.InProgress)) {
		if err := l.reconcile(t); err == nil {
			t.Fatal("no error although nothing was cleaned")
		}
	}
	count := func(request string) int {
		return len(slices.DeleteFunc(slices.Clone(w.requests), func(r string) bool { return r != request }))
	}
	// The first attempt ends after 5 seconds. The next ones read the DaemonSet, and from its age of
	// ten seconds on also list the nodes.
	if lists := count("shoot read *v1.NodeList"); lists != 6 {
		t.Errorf("the nodes were listed %d times, want 6", lists)
	}
	if gets := count("shoot read *v1.DaemonSet"); gets < 14 || gets > 20 {
		t.Errorf("the DaemonSet was read %d times", gets)
	}
}

// TestCleanedCountsOnceApplied checks that a finished cleaner with an earlier task is ignored.
func TestCleanedCountsOnceApplied(t *testing.T) {
	l := newLandscape(t, newExtension([]string{beta}, []string{alpha, beta}), cluster())
	l.behind = true
	if err := l.reconcile(t); err == nil || !strings.Contains(err.Error(), "outdated") {
		t.Errorf("error = %v, want it to say that the ManagedResource is outdated", err)
	}
}

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
// has not changed, so only the number of clean-ups changes the OperatingSystemConfig.
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

// TestCleanUpsSurviveMigration checks that the number of clean-ups moves to the next seed.
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

// TestStateWithoutConfig checks a status whose state contains no config.
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
