package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener/gardener/pkg/utils/managedresources"

	"github.com/gardener-extensions/registry-cache/controller/cleaner"
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

// runCleaner is the stand-in for gardener-resource-manager, the DaemonSet controller and the kubelets.
func (l *landscape) runCleaner(ctx context.Context, seed client.Client) error {
	if err := l.stopCleaner(ctx); err != nil {
		return err
	}
	objects, err := managedresources.GetObjects(ctx, seed, namespace, cleanerName)
	if err != nil || len(objects) == 0 {
		return err
	}
	set, ok := objects[0].(*appsv1.DaemonSet)
	if !ok {
		return fmt.Errorf("the cleaner is a %T", objects[0])
	}
	set.UID = types.UID(cleaner.Name)
	if err := l.shoot.Create(ctx, set); err != nil {
		return err
	}
	nodes := &corev1.NodeList{}
	if err := l.shoot.List(ctx, nodes); err != nil {
		return err
	}
	for _, node := range nodes.Items {
		pod := l.cleanerPod(set, node.Name)
		if node.Status.Conditions[0].Status == corev1.ConditionFalse {
			pod.Status = corev1.PodStatus{}
		}
		if err := l.shoot.Create(ctx, pod); err != nil {
			return err
		}
	}
	return nil
}

func (l *landscape) cleanerPod(set *appsv1.DaemonSet, node string) *corev1.Pod {
	state := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
	if l.noCleaner != "" {
		state = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: l.noCleaner}}
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name:            cleaner.Name + "-" + node,
			Namespace:       set.Namespace,
			Labels:          set.Spec.Template.Labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("DaemonSet"))},
		},
		Spec:   *set.Spec.Template.Spec.DeepCopy(),
		Status: corev1.PodStatus{InitContainerStatuses: []corev1.ContainerStatus{{Name: "clean", State: state}}},
	}
	pod.Spec.NodeName = node
	return pod
}

// stopCleaner does what the deletion of the ManagedResource leads to.
func (l *landscape) stopCleaner(ctx context.Context) error {
	inKubeSystem := client.InNamespace(metav1.NamespaceSystem)
	if err := l.shoot.DeleteAllOf(ctx, &corev1.Pod{}, inKubeSystem); err != nil {
		return err
	}
	return l.shoot.DeleteAllOf(ctx, &appsv1.DaemonSet{}, inKubeSystem)
}

// TestBrokenNodeHoldsUpNothing: a node that is not ready is passed over, and the log names it.
func TestBrokenNodeHoldsUpNothing(t *testing.T) {
	for name, act := range map[string]func(*landscape, *strings.Builder) error{
		"upstream removed": func(l *landscape, said *strings.Builder) error {
			return l.actuator.Reconcile(t.Context(), logTo(said), l.extension(t))
		},
		"disabled": func(l *landscape, said *strings.Builder) error {
			return l.actuator.Delete(t.Context(), logTo(said), l.extension(t))
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLandscape(t, newExtension([]string{beta}, []string{alpha, beta}), cluster(), managedResource(cachesName))
			if err := l.shoot.Create(t.Context(), worker("broken", false)); err != nil {
				t.Fatal(err)
			}
			var said strings.Builder
			if err := act(l, &said); err != nil {
				t.Fatal(err)
			}
			if !slices.Contains(l.log, "apply "+cleanerName) {
				t.Errorf("nothing was cleaned: %v", l.log)
			}
			if !strings.Contains(said.String(), `"nodes"=["broken"]`) {
				t.Errorf("the log does not name the node:\n%s", &said)
			}
		})
	}
}

func logTo(said *strings.Builder) logr.Logger {
	return funcr.New(func(_, args string) { said.WriteString(args + "\n") }, funcr.Options{})
}

// TestBrokenNodeGetsTime: it may just be restarting.
func TestBrokenNodeGetsTime(t *testing.T) {
	l := newLandscape(t, newExtension([]string{beta}, []string{alpha, beta}), cluster())
	l.actuator.waits.notReady = time.Hour
	if err := l.shoot.Create(t.Context(), worker("broken", false)); err != nil {
		t.Fatal(err)
	}
	err := l.reconcile(t)
	if want := "nodes not cleaned: broken (the node is not ready)"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error = %v, want it to say %q", err, want)
	}
}

// TestCleanedCountsOnceApplied: what runs in the shoot before is about another task.
func TestCleanedCountsOnceApplied(t *testing.T) {
	l := newLandscape(t, newExtension([]string{beta}, []string{alpha, beta}), cluster())
	l.behind = true
	if err := l.reconcile(t); err == nil || !strings.Contains(err.Error(), "outdated") {
		t.Errorf("error = %v, want it to say that the ManagedResource is outdated", err)
	}
}
