package volume

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

const alpha = "alpha.upstream.test"

func spec(size, class string) corev1.PersistentVolumeClaimSpec {
	return corev1.PersistentVolumeClaimSpec{
		StorageClassName: &class,
		Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceStorage: resource.MustParse(size),
		}},
	}
}

func claim(upstream, ordinal, size, class string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "kube-system", Name: "cache-volume-" + v1alpha3.Name(upstream) + "-" + ordinal,
			Labels: map[string]string{v1alpha3.LabelUpstreamHost: v1alpha3.HostLabel(upstream)},
		},
		Spec:   spec(size, class),
		Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound},
	}
}

// pending returns a claim that is not bound yet.
func pending(ordinal, size, class string) *corev1.PersistentVolumeClaim {
	c := claim(alpha, ordinal, size, class)
	c.Status.Phase = corev1.ClaimPending
	return c
}

// leaving marks the claim as being deleted.
func leaving(c *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaim {
	c.DeletionTimestamp, c.Finalizers = ptr.To(metav1.Now()), []string{"kubernetes.io/pvc-protection"}
	return c
}

func set(size string) *appsv1.StatefulSet {
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: v1alpha3.Name(alpha), UID: "one"},
		Spec:       appsv1.StatefulSetSpec{VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{Spec: spec(size, "growable")}}},
	}
}

func class(name string, grows *bool) *storagev1.StorageClass {
	return &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, AllowVolumeExpansion: grows}
}

func wanted(size string) *v1alpha3.RegistryCache {
	return &v1alpha3.RegistryCache{Upstream: alpha, Volume: &v1alpha3.Volume{Size: ptr.To(resource.MustParse(size))}}
}

func TestGrow(t *testing.T) {
	classes := []client.Object{class("growable", ptr.To(true)), class("fixed", nil)}
	for name, test := range map[string]struct {
		objects         []client.Object
		writes          []string
		replaced, grown bool
		refused         string
	}{
		"nothing there": {},
		"one instance": {
			objects: []client.Object{claim(alpha, "0", "10Gi", "growable"), set("10Gi")},
			writes:  []string{"grow 0", "orphan"}, replaced: true, grown: true,
		},
		"two instances": {
			objects: []client.Object{claim(alpha, "0", "10Gi", "growable"), claim(alpha, "1", "10Gi", "growable"), set("10Gi")},
			writes:  []string{"grow 0", "grow 1", "orphan"}, replaced: true, grown: true,
		},
		"claim of another cache": {
			objects: []client.Object{claim("beta.upstream.test", "0", "10Gi", "growable")},
		},
		"interrupted between two claims": {
			objects: []client.Object{claim(alpha, "0", "20Gi", "growable"), claim(alpha, "1", "10Gi", "growable"), set("10Gi")},
			writes:  []string{"grow 1", "orphan"}, replaced: true, grown: true,
		},
		"interrupted before the StatefulSet": {
			objects: []client.Object{claim(alpha, "0", "20Gi", "growable"), set("10Gi")},
			writes:  []string{"orphan"}, replaced: true,
		},
		"interrupted after the StatefulSet": {
			objects: []client.Object{claim(alpha, "0", "20Gi", "growable")}, replaced: true,
		},
		"done": {
			objects: []client.Object{claim(alpha, "0", "20Gi", "growable"), set("20Gi")},
		},
		"expanded by a user": {
			objects: []client.Object{claim(alpha, "0", "30Gi", "growable"), set("20Gi")},
		},
		"not bound": {
			objects: []client.Object{pending("0", "10Gi", "growable"), podOn(alpha, ""), set("10Gi")},
			writes:  []string{"orphan", "delete pod", "delete claim 0"}, replaced: true, grown: true,
		},
		"not bound, interrupted after the StatefulSet": {
			objects: []client.Object{pending("0", "10Gi", "growable"), podOn(alpha, "")},
			writes:  []string{"delete pod", "delete claim 0"}, replaced: true, grown: true,
		},
		"not bound, interrupted after the pod": {
			objects: []client.Object{pending("0", "10Gi", "growable")},
			writes:  []string{"delete claim 0"}, replaced: true, grown: true,
		},
		"not bound, of a class that does not allow it": {
			objects: []client.Object{pending("0", "10Gi", "fixed"), podOn(alpha, ""), set("10Gi")},
			writes:  []string{"orphan", "delete pod", "delete claim 0"}, replaced: true, grown: true,
		},
		"one of two instances not bound": {
			objects: []client.Object{claim(alpha, "0", "10Gi", "growable"), pending("1", "10Gi", "growable"), podOn(alpha, "there"), set("10Gi")},
			writes:  []string{"grow 0", "orphan", "delete claim 1"}, replaced: true, grown: true,
		},
		"one of two instances not bound, the other cannot grow": {
			objects: []client.Object{claim(alpha, "0", "10Gi", "fixed"), pending("1", "10Gi", "fixed"), set("10Gi")}, refused: "fixed",
		},
		"the claim of a previous cache is being deleted": {
			objects: []client.Object{leaving(claim(alpha, "0", "10Gi", "growable"))},
		},
		"the claim of a previous cache is being deleted and could not grow": {
			objects: []client.Object{leaving(claim(alpha, "0", "10Gi", "fixed")), set("20Gi")},
		},
		"the class does not allow it": {
			objects: []client.Object{claim(alpha, "0", "10Gi", "fixed"), set("10Gi")}, refused: "fixed",
		},
		"the class of one instance does not": {
			objects: []client.Object{claim(alpha, "0", "10Gi", "growable"), claim(alpha, "1", "10Gi", "fixed"), set("10Gi")}, refused: "fixed",
		},
		"the class is gone": {
			objects: []client.Object{claim(alpha, "0", "10Gi", "gone"), set("10Gi")}, refused: "gone",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var writes []string
			shoot := recording(&writes, append(test.objects, classes...))
			growth, err := Grow(t.Context(), shoot, wanted("20Gi"))
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(writes, test.writes) || growth.Replaced != test.replaced || growth.Grown != test.grown {
				t.Errorf("writes %q, growth %+v", writes, growth)
			}
			refused := ""
			if growth.Refused != nil {
				refused = growth.Refused.StorageClass
				if growth.Refused.Size.String() != "10Gi" || !strings.HasPrefix(growth.Refused.Claim, "kube-system/cache-volume-") {
					t.Errorf("refusal = %+v", growth.Refused)
				}
			}
			if refused != test.refused {
				t.Errorf("refused by %q, want %q", refused, test.refused)
			}
		})
	}
}

// TestGrowRefusedByTheServer: if a quota or an admission plugin refuses to expand a claim, Grow
// makes no further change.
func TestGrowRefusedByTheServer(t *testing.T) {
	resourceOf := corev1.Resource("persistentvolumeclaims")
	for name, test := range map[string]struct {
		err     error
		refused bool
	}{
		"quota":    {apierrors.NewForbidden(resourceOf, "c", errors.New("exceeded quota: storage")), true},
		"invalid":  {apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim").GroupKind(), "c", nil), true},
		"too busy": {apierrors.NewTooManyRequestsError("later"), false},
	} {
		t.Run(name, func(t *testing.T) {
			var writes []string
			shoot := interceptor.NewClient(fake.NewClientBuilder().
				WithObjects(claim(alpha, "0", "10Gi", "growable"), set("10Gi"), class("growable", ptr.To(true))).Build(), interceptor.Funcs{
				Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
					return test.err
				},
				Delete: func(_ context.Context, _ client.WithWatch, object client.Object, _ ...client.DeleteOption) error {
					writes = append(writes, object.GetName())
					return nil
				},
			})
			growth, err := Grow(t.Context(), shoot, wanted("20Gi"))
			if (err == nil) != test.refused || (growth.Refused != nil) != test.refused || len(writes) > 0 {
				t.Fatalf("growth %+v, error %v, deleted %q", growth, err, writes)
			}
			if r := growth.Refused; r != nil && (r.Reason != test.err.Error() || r.Size.String() != "10Gi" || !strings.HasPrefix(r.Claim, "kube-system/")) {
				t.Errorf("refusal = %+v", r)
			}
		})
	}
}

// recording returns a shoot that records writes. Like an API server it expands bound claims only.
func recording(writes *[]string, objects []client.Object) client.Client {
	return interceptor.NewClient(fake.NewClientBuilder().WithObjects(objects...).Build(), interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if claim, ok := obj.(*corev1.PersistentVolumeClaim); ok && claim.Status.Phase != corev1.ClaimBound {
				return apierrors.NewForbidden(corev1.Resource("persistentvolumeclaims"), claim.Name, errors.New("Only bound persistent volume claims can be expanded"))
			}
			*writes = append(*writes, "grow "+obj.GetName()[len(obj.GetName())-1:])
			return c.Patch(ctx, obj, patch, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			*writes = append(*writes, deletion(obj, (&client.DeleteOptions{}).ApplyOptions(opts)))
			return c.Delete(ctx, obj, opts...)
		},
	})
}

func deletion(obj client.Object, options *client.DeleteOptions) string {
	what := "delete"
	switch obj.(type) {
	case *corev1.Pod:
		what = "delete pod"
	case *corev1.PersistentVolumeClaim:
		what = "delete claim " + obj.GetName()[len(obj.GetName())-1:]
	case *appsv1.StatefulSet:
		if ptr.Deref(options.PropagationPolicy, "") == metav1.DeletePropagationOrphan {
			what = "orphan"
		}
	}
	if options.Preconditions == nil {
		what += " without UID"
	}
	return what
}

func TestAwaitReplaced(t *testing.T) {
	for name, test := range map[string]struct {
		set  *appsv1.StatefulSet
		want string
	}{
		"recreated":                   {set("20Gi"), ""},
		"missing":                     {nil, "has not been recreated"},
		"recreated with the old size": {set("10Gi"), "old size"},
	} {
		t.Run(name, func(t *testing.T) {
			builder := fake.NewClientBuilder()
			if test.set != nil {
				builder.WithObjects(test.set)
			}
			err := AwaitReplaced(t.Context(), builder.Build(), wanted("20Gi"), 50*time.Millisecond)
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("error = %v, want %q", err, test.want)
			}
		})
	}
}
