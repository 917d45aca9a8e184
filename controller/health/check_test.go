package health

import (
	"context"
	"errors"
	"fmt"
	"strings"
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

const (
	alpha = "alpha.upstream.test"
	beta  = "beta.upstream.test"
)

// idOf returns the identity of an upstream's cache if no other cache has the same name.
func idOf(upstream string) v1alpha3.Identity {
	return v1alpha3.Identify([]v1alpha3.RegistryCache{{Upstream: upstream}}, nil)[0]
}

// cacheOf returns a cache of 20Gi with 1 or 2 replicas.
func cacheOf(upstream string, replicas int) v1alpha3.RegistryCache {
	return v1alpha3.RegistryCache{
		Upstream: upstream, Volume: &v1alpha3.Volume{Size: ptr.To(resource.MustParse("20Gi"))},
		HighAvailability: &v1alpha3.HighAvailability{Enabled: replicas > 1},
	}
}

func metaOf(upstream, name string, ordinal int) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: "kube-system", Name: fmt.Sprintf("%s%s-%d", name, idOf(upstream).Name, ordinal),
		Labels: map[string]string{v1alpha3.LabelApp: idOf(upstream).Name, v1alpha3.LabelUpstreamHost: idOf(upstream).HostLabel},
	}
}

// claim returns a bound claim of 20Gi with the changes.
func claim(upstream string, ordinal int, changes ...func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metaOf(upstream, "cache-volume-", ordinal)}
	c.Spec.StorageClassName = ptr.To("disk")
	c.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("20Gi")}
	c.Status.Phase = corev1.ClaimBound
	for _, change := range changes {
		change(c)
	}
	return c
}

func small(c *corev1.PersistentVolumeClaim) {
	c.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("10Gi")
}

func removed(c *corev1.PersistentVolumeClaim) {
	c.DeletionTimestamp, c.Finalizers = ptr.To(metav1.Now()), []string{"a/b"}
}

func unbound(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimPending }

func unresized(kind corev1.PersistentVolumeClaimConditionType) func(c *corev1.PersistentVolumeClaim) {
	return func(c *corev1.PersistentVolumeClaim) {
		c.Status.Conditions = []corev1.PersistentVolumeClaimCondition{{Type: kind, Status: corev1.ConditionTrue, Message: "the disk is attached"}}
	}
}

// pod returns a ready pod with the changes.
func pod(upstream string, ordinal int, changes ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metaOf(upstream, "", ordinal)}
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}, {Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	for _, change := range changes {
		change(p)
	}
	return p
}

func unready(p *corev1.Pod) { p.Status.Conditions[1].Status = corev1.ConditionFalse }

func unscheduled(p *corev1.Pod) {
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/2 nodes are available"}}
}

func crashing(p *corev1.Pod) {
	unready(p)
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{
		Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off 5m0s"},
	}}}
}

func leaving(p *corev1.Pod) {
	unready(p)
	p.DeletionTimestamp, p.Finalizers = ptr.To(metav1.Now()), []string{"a/b"}
}

// checkIn returns the problems of the caches in the shoot.
func checkIn(t *testing.T, shoot client.Client, caches []v1alpha3.RegistryCache, identities v1alpha3.Identities) ([]problem, error) {
	t.Helper()
	a := newActuator(nil, func(context.Context, string) (client.Client, error) { return shoot, nil })
	return a.check(t.Context(), namespace, caches, identities)
}

// shootWith returns a shoot that answers each growth with answer, or accepts it if answer is nil.
func shootWith(answer error, objects ...client.Object) client.Client {
	return fake.NewClientBuilder().WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if answer != nil {
				return answer
			}
			return c.Patch(ctx, obj, patch, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			if answer != nil {
				return answer
			}
			return c.Delete(ctx, obj, opts...)
		},
	}).Build()
}

var fixed = apierrors.NewForbidden(corev1.Resource("persistentvolumeclaims"), "c", errors.New("the storageclass must support resize"))

func TestCheck(t *testing.T) {
	for name, test := range map[string]struct {
		replicas int
		refusal  error
		objects  []client.Object
		want     string
		lasting  bool
	}{
		"all is well":        {1, fixed, []client.Object{claim(alpha, 0), pod(alpha, 0)}, "", false},
		"two replicas":       {2, nil, []client.Object{claim(alpha, 0), claim(alpha, 1), pod(alpha, 0), pod(alpha, 1)}, "", false},
		"can grow":           {1, nil, []client.Object{claim(alpha, 0, small), pod(alpha, 0)}, "", false},
		"of another cache":   {1, fixed, []client.Object{claim(beta, 0, small, unbound), pod(beta, 0, unready), claim(alpha, 0), pod(alpha, 0)}, "", false},
		"a previous pod":     {1, nil, []client.Object{claim(alpha, 0), pod(alpha, 0), pod(alpha, 1, leaving)}, "", false},
		"a removed replica":  {1, fixed, []client.Object{claim(alpha, 0), claim(alpha, 1, small), pod(alpha, 0)}, "-1 of a removed replica stays: ", true},
		"a removed claim":    {1, fixed, []client.Object{claim(alpha, 0, small, removed), pod(alpha, 0)}, "", false},
		"never deployed":     {1, nil, nil, "it has 0 of 1 pods", false},
		"a pod is missing":   {2, nil, []client.Object{claim(alpha, 0), pod(alpha, 0)}, "it has 1 of 2 pods", false},
		"not ready":          {1, nil, []client.Object{claim(alpha, 0), pod(alpha, 0, unready)}, "pod kube-system/registry-alpha-upstream-test-0 is not ready: ", false},
		"one is not ready":   {2, nil, []client.Object{claim(alpha, 0), pod(alpha, 0), pod(alpha, 1, unready)}, "pod kube-system/registry-alpha-upstream-test-1 is not ready: ", false},
		"crashing":           {1, nil, []client.Object{claim(alpha, 0), pod(alpha, 0, crashing)}, "is not ready (CrashLoopBackOff): ", false},
		"pending":            {1, nil, []client.Object{claim(alpha, 0), pod(alpha, 0, unscheduled)}, "is pending: 0/2 nodes are available", false},
		"not bound":          {1, nil, []client.Object{claim(alpha, 0, unbound), pod(alpha, 0)}, `PersistentVolumeClaim kube-system/cache-volume-registry-alpha-upstream-test-0 is not bound (Pending): see its events and StorageClass "disk"`, false},
		"not bound, small":   {1, fixed, []client.Object{claim(alpha, 0, unbound, small), pod(alpha, 0)}, "is not bound (Pending)", false},
		"cannot grow":        {1, fixed, []client.Object{claim(alpha, 0, small), pod(alpha, 0)}, `cannot grow from 10Gi to 20Gi: persistentvolumeclaims "c" is forbidden: the storageclass must support resize; fix the cause, such as allowVolumeExpansion of StorageClass "disk"`, true},
		"resize failed":      {1, nil, []client.Object{claim(alpha, 0, unresized(corev1.PersistentVolumeClaimControllerResizeError)), pod(alpha, 0)}, "could not be resized by its storage provider: the disk is attached", true},
		"resize failed late": {1, nil, []client.Object{claim(alpha, 0, unresized(corev1.PersistentVolumeClaimNodeResizeError)), pod(alpha, 0)}, "could not be resized", true},
		"resize goes on":     {1, nil, []client.Object{claim(alpha, 0, unresized(corev1.PersistentVolumeClaimResizing)), pod(alpha, 0)}, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			problems, err := checkIn(t, shootWith(test.refusal, test.objects...), []v1alpha3.RegistryCache{cacheOf(alpha, test.replicas)}, v1alpha3.Identities{idOf(alpha)})
			if err != nil {
				t.Fatal(err)
			}
			if test.want == "" {
				if len(problems) > 0 {
					t.Errorf("problems %+v", problems)
				}
				return
			}
			text := describe(problems)
			if len(problems) != 1 || !strings.HasPrefix(text, "cache of "+alpha+": ") || !strings.Contains(text, test.want) || problems[0].lasting != test.lasting {
				t.Errorf("problems %+v, want %q, lasting: %t", problems, test.want, test.lasting)
			}
		})
	}
}

// TestCheckWithoutAnswer: only a refusal is a problem of the claim. The dry run changes nothing.
func TestCheckWithoutAnswer(t *testing.T) {
	busy := apierrors.NewTooManyRequestsError("later")
	shoot := shootWith(busy, claim(alpha, 0, small))
	if problems, err := checkIn(t, shoot, []v1alpha3.RegistryCache{cacheOf(alpha, 1)}, v1alpha3.Identities{idOf(alpha)}); !errors.Is(err, busy) {
		t.Errorf("problems %v, error %v", problems, err)
	}
	shoot = shootWith(nil, claim(alpha, 0, small), pod(alpha, 0))
	if _, err := checkIn(t, shoot, []v1alpha3.RegistryCache{cacheOf(alpha, 1)}, v1alpha3.Identities{idOf(alpha)}); err != nil {
		t.Fatal(err)
	}
	after := claim(alpha, 0)
	if err := shoot.Get(t.Context(), client.ObjectKeyFromObject(after), after); err != nil {
		t.Fatal(err)
	}
	if size := after.Spec.Resources.Requests[corev1.ResourceStorage]; size.String() != "10Gi" {
		t.Errorf("the check has grown the claim to %s", size.String())
	}
}

// TestCheckWithoutDryRun: a webhook that does not support dry runs hides no reason.
func TestCheckWithoutDryRun(t *testing.T) {
	webhook := apierrors.NewBadRequest(`admission webhook "a.test" does not support dry run`)
	for name, test := range map[string]struct {
		answers []error
		want    string
	}{
		"refused before":  {[]error{fixed, webhook, webhook}, "cannot grow from 10Gi to 20Gi: " + fixed.Error()},
		"accepted before": {[]error{nil, webhook}, ""},
		"refused after":   {[]error{nil, webhook, fixed}, "cannot grow from 10Gi to 20Gi: " + fixed.Error()},
		"unknown":         {[]error{webhook}, "has 10Gi instead of 20Gi, for an unknown reason: " + webhook.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			var shoot client.Client
			a := newActuator(nil, func(context.Context, string) (client.Client, error) { return shoot, nil })
			var text string
			for _, answer := range test.answers {
				shoot = shootWith(answer, claim(alpha, 0, small), pod(alpha, 0))
				problems, err := a.check(t.Context(), namespace, []v1alpha3.RegistryCache{cacheOf(alpha, 1)}, v1alpha3.Identities{idOf(alpha)})
				if err != nil {
					t.Fatal(err)
				}
				text = describe(problems)
			}
			if (text == "") != (test.want == "") || !strings.Contains(text, test.want) {
				t.Errorf("the last check says %q, want %q", text, test.want)
			}
		})
	}
}

// TestCheckOfRemovedReplica: an unwanted claim is a problem only if the shoot refuses its deletion,
// and the check deletes nothing.
func TestCheckOfRemovedReplica(t *testing.T) {
	for want, answer := range map[string]error{"": nil, "-1 of a removed replica stays: " + fixed.Error(): fixed} {
		shoot := shootWith(answer, claim(alpha, 0), claim(alpha, 1), pod(alpha, 0))
		a := newActuator(nil, func(context.Context, string) (client.Client, error) { return shoot, nil })
		problems, err := a.check(t.Context(), namespace, []v1alpha3.RegistryCache{cacheOf(alpha, 1)}, v1alpha3.Identities{idOf(alpha)})
		if err != nil {
			t.Fatal(err)
		}
		if text := describe(problems); (text == "") != (want == "") || !strings.Contains(text, want) {
			t.Errorf("the check says %q, want %q", text, want)
		}
		if err := shoot.Get(t.Context(), client.ObjectKeyFromObject(claim(alpha, 1)), &corev1.PersistentVolumeClaim{}); err != nil {
			t.Errorf("after the check: %v", err)
		}
	}
}

func TestDescribeIsBounded(t *testing.T) {
	var caches []v1alpha3.RegistryCache
	for i := range 50 {
		caches = append(caches, cacheOf(fmt.Sprintf("r%d.test", i), 1))
	}
	problems, err := checkIn(t, shootWith(nil), caches, v1alpha3.Identify(caches, nil))
	if err != nil || len(problems) != 50 {
		t.Fatalf("%d problems, error %v", len(problems), err)
	}
	text := describe(problems)
	if !strings.HasPrefix(text, "cache of r0.test: ") || !strings.HasSuffix(text, "; and 42 more") || len(text) > 4096 {
		t.Error(text)
	}
}
