package volume

import (
	"context"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

// podOn returns a pod of a cache that runs on the node or, if node is "", waits for a node.
func podOn(upstream, node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "kube-system", Name: idOf(upstream).Name + "-0", UID: "pod",
			Labels:          map[string]string{v1alpha3.LabelApp: idOf(upstream).Name, v1alpha3.LabelUpstreamHost: idOf(upstream).HostLabel},
			OwnerReferences: []metav1.OwnerReference{{Kind: "StatefulSet", Name: idOf(upstream).Name, Controller: ptr.To(true)}},
		},
		Spec: corev1.PodSpec{NodeName: node, Volumes: []corev1.Volume{
			{Name: "config"},
			{Name: "cache-volume", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{
				ClaimName: claim(upstream, "0", "10Gi").Name,
			}}},
		}},
	}
}

func bound(upstream string) *corev1.PersistentVolumeClaim {
	c := claim(upstream, "0", "10Gi")
	c.UID, c.Spec.VolumeName = types.UID("claim of "+upstream), "volume-of-"+upstream
	return c
}

// volumeOn returns the volume of the upstream's cache. Its node affinity consists of the terms: a
// node must meet all requirements of one of them.
func volumeOn(upstream string, terms ...corev1.NodeSelectorTerm) *corev1.PersistentVolume {
	c := bound(upstream)
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: c.Spec.VolumeName},
		Spec:       corev1.PersistentVolumeSpec{ClaimRef: &corev1.ObjectReference{Namespace: c.Namespace, Name: c.Name, UID: c.UID}},
	}
	if terms != nil {
		volume.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: terms}}
	}
	return volume
}

func term(requirements ...corev1.NodeSelectorRequirement) corev1.NodeSelectorTerm {
	return corev1.NodeSelectorTerm{MatchExpressions: requirements}
}

func host(names ...string) corev1.NodeSelectorRequirement {
	return corev1.NodeSelectorRequirement{Key: "kubernetes.io/hostname", Operator: corev1.NodeSelectorOpIn, Values: names}
}

var zone = corev1.NodeSelectorRequirement{Key: "topology.kubernetes.io/zone", Operator: corev1.NodeSelectorOpIn, Values: []string{"z"}}

func node(name, pool string, ready corev1.ConditionStatus) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"kubernetes.io/hostname": name}}}
	if pool != "" {
		n.Labels["worker.gardener.cloud/pool"] = pool
	}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}
	return n
}

func TestReplaceStranded(t *testing.T) {
	const beta = "beta.upstream.test"
	pod, there, gone := podOn(alpha, ""), node("there", "local", corev1.ConditionTrue), term(host("gone"))
	changed := func(object client.Object, change func()) client.Object { change(); return object }
	otherOwner, unbound, terminating := podOn(alpha, ""), bound(alpha), podOn(alpha, "")
	otherLabel, reused := bound(alpha), volumeOn(alpha, gone)
	for name, test := range map[string]struct {
		objects []client.Object
		want    []string
	}{
		"no pods":                        {objects: []client.Object{there, bound(alpha), volumeOn(alpha, gone)}},
		"its node is gone":               {objects: []client.Object{there, pod, bound(alpha), volumeOn(alpha, gone)}, want: []string{"claim", "pod"}},
		"all of its nodes are gone":      {objects: []client.Object{there, pod, bound(alpha), volumeOn(alpha, term(host("gone", "too")), gone)}, want: []string{"claim", "pod"}},
		"in a zone too":                  {objects: []client.Object{there, pod, bound(alpha), volumeOn(alpha, term(zone, host("gone")))}, want: []string{"claim", "pod"}},
		"two caches":                     {objects: []client.Object{there, pod, bound(alpha), volumeOn(alpha, gone), podOn(beta, ""), bound(beta), volumeOn(beta, gone)}, want: []string{"claim", "pod", "claim", "pod"}},
		"its node is there":              {objects: []client.Object{there, pod, bound(alpha), volumeOn(alpha, term(host("there")))}},
		"one of its nodes is there":      {objects: []client.Object{there, pod, bound(alpha), volumeOn(alpha, term(host("gone", "there")))}},
		"another way is there":           {objects: []client.Object{there, pod, bound(alpha), volumeOn(alpha, gone, term(host("there")))}},
		"its node is not ready":          {objects: []client.Object{there, node("gone", "local", corev1.ConditionUnknown), pod, bound(alpha), volumeOn(alpha, gone)}},
		"a zone":                         {objects: []client.Object{there, pod, bound(alpha), volumeOn(alpha, term(zone))}},
		"a node or a zone":               {objects: []client.Object{there, pod, bound(alpha), volumeOn(alpha, gone, term(zone))}},
		"not on a node":                  {objects: []client.Object{there, pod, bound(alpha), volumeOn(alpha, term(corev1.NodeSelectorRequirement{Key: "kubernetes.io/hostname", Operator: corev1.NodeSelectorOpNotIn, Values: []string{"gone"}}))}},
		"anywhere":                       {objects: []client.Object{there, pod, bound(alpha), volumeOn(alpha)}},
		"no terms":                       {objects: []client.Object{there, pod, bound(alpha), volumeOn(alpha, []corev1.NodeSelectorTerm{}...)}},
		"no nodes":                       {objects: []client.Object{pod, bound(alpha), volumeOn(alpha, gone)}},
		"no ready nodes":                 {objects: []client.Object{node("there", "local", corev1.ConditionFalse), pod, bound(alpha), volumeOn(alpha, gone)}},
		"no workers":                     {objects: []client.Object{node("there", "", corev1.ConditionTrue), pod, bound(alpha), volumeOn(alpha, gone)}},
		"the pod has a node":             {objects: []client.Object{there, podOn(alpha, "there"), bound(alpha), volumeOn(alpha, gone)}},
		"the pod is being deleted":       {objects: []client.Object{there, changed(terminating, func() { terminating.DeletionTimestamp, terminating.Finalizers = ptr.To(metav1.Now()), []string{"x/y"} }), bound(alpha), volumeOn(alpha, gone)}},
		"the pod has another owner":      {objects: []client.Object{there, changed(otherOwner, func() { otherOwner.OwnerReferences[0].Kind = "Job" }), bound(alpha), volumeOn(alpha, gone)}},
		"the claim has other labels":     {objects: []client.Object{there, pod, changed(otherLabel, func() { otherLabel.Labels = nil }), volumeOn(alpha, gone)}},
		"the volume is of another claim": {objects: []client.Object{there, pod, bound(alpha), changed(reused, func() { reused.Spec.ClaimRef.UID = "other" })}},
		"not bound":                      {objects: []client.Object{there, pod, changed(unbound, func() { unbound.Spec.VolumeName = "" }), volumeOn(alpha, gone)}},
		"no claim":                       {objects: []client.Object{there, pod, volumeOn(alpha, gone)}},
		"no volume":                      {objects: []client.Object{there, pod, bound(alpha)}},
	} {
		t.Run(name, func(t *testing.T) {
			var writes []string
			shoot := deletions(&writes, fake.NewClientBuilder().WithObjects(test.objects...).Build())
			deleted, err := replaceStranded(t, shoot, alpha, beta)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(writes, test.want) || len(deleted) != len(test.want)/2 {
				t.Errorf("deleted %q, reported %v, want %q", writes, deleted, test.want)
			}
		})
	}
}

// TestReplaceStrandedAfterInterruption: the pod is deleted even if its claim is already being
// deleted.
func TestReplaceStrandedAfterInterruption(t *testing.T) {
	var writes []string
	going := bound(alpha)
	going.DeletionTimestamp, going.Finalizers = ptr.To(metav1.Now()), []string{"kubernetes.io/pvc-protection"}
	shoot := deletions(&writes, fake.NewClientBuilder().WithObjects(node("there", "local", corev1.ConditionTrue), podOn(alpha, ""), going, volumeOn(alpha, term(host("gone")))).Build())
	deleted, err := replaceStranded(t, shoot, alpha)
	if err != nil || !slices.Equal(writes, []string{"claim", "pod"}) || deleted[0].Cache.Upstream != alpha || deleted[0].Name != going.Name {
		t.Errorf("deleted %q, reported %v, error %v", writes, deleted, err)
	}
}

func replaceStranded(t *testing.T, shoot client.Client, upstreams ...string) ([]Claim, error) {
	t.Helper()
	var caches []v1alpha3.RegistryCache
	for _, upstream := range upstreams {
		caches = append(caches, v1alpha3.RegistryCache{Upstream: upstream})
	}
	claims, _, err := Claims(t.Context(), shoot, caches, v1alpha3.Identify(caches, nil))
	if err != nil {
		t.Fatal(err)
	}
	return ReplaceStranded(t.Context(), shoot, claims)
}

// deletions returns a shoot that records deletions. Each deletion must name the object's UID.
func deletions(writes *[]string, shoot client.WithWatch) client.Client {
	return interceptor.NewClient(shoot, interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			what := "claim"
			if _, isPod := obj.(*corev1.Pod); isPod {
				what = "pod"
			}
			if preconditions := (&client.DeleteOptions{}).ApplyOptions(opts).Preconditions; preconditions == nil || *preconditions.UID != obj.GetUID() {
				what += " without UID"
			}
			*writes = append(*writes, what)
			return c.Delete(ctx, obj, opts...)
		},
	})
}
