package cluster

import (
	"maps"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func TestKeepCoreDNSOffWorkers(t *testing.T) {
	linux := map[string]string{"kubernetes.io/os": "linux"}
	for _, tc := range []struct {
		name  string
		nodes []*Node
		want  map[string]string
	}{
		{"with a worker", []*Node{{controlPlane: true}, {}}, map[string]string{"kubernetes.io/os": "linux", controlPlaneLabel: ""}},
		{"without workers", []*Node{{controlPlane: true}}, linux},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "coredns"}}
			d.Spec.Template.Spec = corev1.PodSpec{NodeSelector: linux}
			c := &Cluster{nodes: tc.nodes, client: fake.NewClientBuilder().WithObjects(d).Build()}
			for range 2 {
				if err := c.keepCoreDNSOffWorkers(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if err := c.client.Get(t.Context(), coreDNS, d); err != nil {
				t.Fatal(err)
			}
			if got := d.Spec.Template.Spec.NodeSelector; !maps.Equal(got, tc.want) {
				t.Errorf("node selector %v, want %v", got, tc.want)
			}
		})
	}
}
