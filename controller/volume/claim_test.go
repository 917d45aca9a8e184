package volume

import (
	"context"
	"errors"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
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

// idOf returns the identity of an upstream's cache if no other cache has the same name.
func idOf(upstream string) v1alpha3.Identity {
	return v1alpha3.Identify([]v1alpha3.RegistryCache{{Upstream: upstream}}, nil)[0]
}

// claim returns a bound claim of one replica.
func claim(upstream, ordinal, size string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "kube-system", Name: "cache-volume-" + idOf(upstream).Name + "-" + ordinal, UID: "uid",
			Labels: map[string]string{v1alpha3.LabelApp: idOf(upstream).Name, v1alpha3.LabelUpstreamHost: idOf(upstream).HostLabel},
		},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: ptr.To("local"),
			Resources:        corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}},
		},
		Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound},
	}
}

// wanted returns a cache with a volume of the size. If replicated, it has two replicas.
func wanted(size string, replicated bool) v1alpha3.RegistryCache {
	return v1alpha3.RegistryCache{
		Upstream: alpha, Volume: &v1alpha3.Volume{Size: ptr.To(resource.MustParse(size))},
		HighAvailability: &v1alpha3.HighAvailability{Enabled: replicated},
	}
}

func TestClaims(t *testing.T) {
	other, leaving := claim("beta.upstream.test", "0", "10Gi"), claim(alpha, "1", "10Gi")
	leaving.DeletionTimestamp, leaving.Finalizers = ptr.To(metav1.Now()), []string{"kubernetes.io/pvc-protection"}
	unlabeled := claim(alpha, "2", "10Gi")
	unlabeled.Labels = nil
	shoot := fake.NewClientBuilder().WithObjects(claim(alpha, "0", "10Gi"), other, leaving, unlabeled).Build()
	claims, others, err := Claims(t.Context(), shoot, []v1alpha3.RegistryCache{wanted("20Gi", false)}, v1alpha3.Identities{idOf(alpha), idOf("beta.upstream.test")})
	var names []string
	for _, c := range claims {
		names = append(names, c.Cache.Upstream+" "+c.Name)
	}
	want := []string{alpha + " cache-volume-registry-alpha-upstream-test-0", alpha + " cache-volume-registry-alpha-upstream-test-1"}
	if err != nil || !slices.Equal(names, want) {
		t.Errorf("claims %q, error %v", names, err)
	}
	if len(others) != 1 || others[0].Name != other.Name {
		t.Errorf("claims of other caches: %v", others)
	}
}

func TestTooSmallAndSurplus(t *testing.T) {
	odd := claim(alpha, "0", "10Gi")
	odd.Name = "cache-volume"
	for name, test := range map[string]struct {
		claim             *corev1.PersistentVolumeClaim
		cache             v1alpha3.RegistryCache
		tooSmall, surplus bool
	}{
		"smaller":                     {claim(alpha, "0", "10Gi"), wanted("20Gi", false), true, false},
		"as configured":               {claim(alpha, "0", "20Gi"), wanted("20480Mi", false), false, false},
		"bigger":                      {claim(alpha, "0", "30Gi"), wanted("20Gi", false), false, false},
		"of the second replica":       {claim(alpha, "1", "10Gi"), wanted("10Gi", true), false, false},
		"of a replica that is gone":   {claim(alpha, "1", "10Gi"), wanted("10Gi", false), false, true},
		"of a replica beyond the two": {claim(alpha, "2", "10Gi"), wanted("10Gi", true), false, true},
		"without an ordinal":          {odd, wanted("10Gi", false), false, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := Claim{test.claim, &test.cache}
			if c.TooSmall() != test.tooSmall || c.Surplus() != test.surplus {
				t.Errorf("too small: %t, surplus: %t", c.TooSmall(), c.Surplus())
			}
		})
	}
}

func TestGrow(t *testing.T) {
	resourceOf := corev1.Resource("persistentvolumeclaims")
	for name, test := range map[string]struct {
		answer  error
		options []client.PatchOption
		want    string
		refused bool
	}{
		"accepted":            {want: "20Gi"},
		"tried":               {options: []client.PatchOption{client.DryRunAll}, want: "10Gi"},
		"no expansion, quota": {answer: apierrors.NewForbidden(resourceOf, "c", errors.New("exceeded quota: storage")), want: "10Gi", refused: true},
		"invalid":             {answer: apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim").GroupKind(), "c", nil), want: "10Gi", refused: true},
		"denied by a webhook": {answer: apierrors.NewBadRequest("denied"), want: "10Gi", refused: true},
		"no webhook runs":     {answer: apierrors.NewInternalError(errors.New("failed calling webhook")), want: "10Gi", refused: true},
		"too busy":            {answer: apierrors.NewTooManyRequestsError("later"), want: "10Gi"},
	} {
		t.Run(name, func(t *testing.T) {
			stored, cache := claim(alpha, "0", "10Gi"), wanted("20Gi", false)
			shoot := interceptor.NewClient(fake.NewClientBuilder().WithObjects(stored).Build(), interceptor.Funcs{
				Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
					if test.answer != nil {
						return test.answer
					}
					return c.Patch(ctx, obj, patch, opts...)
				},
			})
			err := Claim{stored, &cache}.Grow(t.Context(), shoot, test.options...)
			if !errors.Is(err, test.answer) || Refused(err) != test.refused {
				t.Errorf("error = %v, refused: %t", err, Refused(err))
			}
			if err := shoot.Get(t.Context(), client.ObjectKeyFromObject(stored), stored); err != nil {
				t.Fatal(err)
			}
			if size := (Claim{stored, &cache}).Requested(); size.String() != test.want {
				t.Errorf("the claim requests %s, want %s", size.String(), test.want)
			}
		})
	}
}

func TestDelete(t *testing.T) {
	var writes []string
	cache, stored := wanted("10Gi", false), claim(alpha, "1", "10Gi")
	shoot := deletions(&writes, fake.NewClientBuilder().WithObjects(stored).Build())
	for range 2 { // the second time, the claim no longer exists
		if err := (Claim{stored, &cache}).Delete(t.Context(), shoot); err != nil {
			t.Error(err)
		}
	}
	if !slices.Equal(writes, []string{"claim", "claim"}) {
		t.Errorf("writes %q", writes)
	}
}
