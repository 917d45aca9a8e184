//go:build e2e

package rig

import (
	"context"
	"fmt"
	"time"

	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/e2e/timeline"
)

// RaiseFence creates the object, waits until the recording has its event, and returns all events so
// far.
func RaiseFence(ctx context.Context, p *Run, recording *timeline.Recording, cluster Access, fence client.Object) []timeline.Event {
	p.Helper()
	p.Afterwards(ctx, func(ctx context.Context) error { return client.IgnoreNotFound(cluster.Delete(ctx, fence)) })
	p.Check(cluster.Create(ctx, fence))
	ctx, cancel := context.WithTimeoutCause(ctx, 15*time.Second, fmt.Errorf("waited 15s for the event of %s", fence.GetName()))
	defer cancel()
	_, err := recording.Await(ctx, timeline.Named(fence.GetName()))
	p.Check(err)
	events, err := recording.Events()
	p.Check(err)
	return events
}

// ResourceFence returns a ManagedResource whose class no resource manager handles.
func ResourceFence(namespace string) client.Object {
	return &resourcesv1alpha1.ManagedResource{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-fence-", Namespace: namespace},
		Spec: resourcesv1alpha1.ManagedResourceSpec{
			Class: ptr.To("e2e-nobody"), SecretRefs: []corev1.LocalObjectReference{{Name: "none"}},
		},
	}
}

// DaemonSetFence returns a DaemonSet whose node selector matches no node.
func DaemonSetFence() client.Object {
	labels := map[string]string{"app": "e2e-fence"}
	return &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-fence-", Namespace: metav1.NamespaceDefault},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					NodeSelector: map[string]string{"e2e-fence": "no-node"},
					Containers:   []corev1.Container{{Name: "none", Image: "registry-cache.testbed/none"}},
				},
			},
		},
	}
}
