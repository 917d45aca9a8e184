package cluster

import (
	"maps"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func TestPlaceCoreDNS(t *testing.T) {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "coredns"}}
	d.Spec.Replicas = ptr.To[int32](2)
	d.Spec.Template.Spec = corev1.PodSpec{NodeSelector: map[string]string{"kubernetes.io/os": "linux"}}
	c := &Cluster{client: fake.NewClientBuilder().WithObjects(d).Build()}
	for range 2 {
		if err := c.placeCoreDNS(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.client.Get(t.Context(), coreDNS, d); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"kubernetes.io/os": "linux", controlPlaneLabel: ""}
	if got := d.Spec.Template.Spec.NodeSelector; !maps.Equal(got, want) {
		t.Errorf("node selector %v, want %v", got, want)
	}
	if *d.Spec.Replicas != 1 {
		t.Errorf("%d pods, want 1", *d.Spec.Replicas)
	}
}
