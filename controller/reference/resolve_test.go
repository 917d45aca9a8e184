package reference

import (
	"context"
	"testing"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

const namespace = "shoot--local--local"

// login returns gardenlet's copy of a Secret in the shoot's namespace, modified by change.
func login(change func(*corev1.Secret)) *corev1.Secret {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "ref-login-v1"},
		Immutable:  ptr.To(true),
		Data:       map[string][]byte{"username": []byte("@robot"), "password": []byte("a'b#c$d")},
	}
	if change != nil {
		change(secret)
	}
	return secret
}

func config() *v1alpha3.RegistryConfig {
	return &v1alpha3.RegistryConfig{Caches: []v1alpha3.RegistryCache{
		{Upstream: "public.test"},
		{Upstream: "private.test", SecretReferenceName: ptr.To("login")},
		{Upstream: "other.test", SecretReferenceName: ptr.To("login")},
	}}
}

func resources(kind string) []gardencorev1beta1.NamedResourceReference {
	return []gardencorev1beta1.NamedResourceReference{{
		Name:        "login",
		ResourceRef: autoscalingv1.CrossVersionObjectReference{APIVersion: "v1", Kind: kind, Name: "login-v1"},
	}}
}

func TestResolve(t *testing.T) {
	reads := 0
	seed := interceptor.NewClient(fake.NewFakeClient(login(nil)), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			reads++
			return c.Get(ctx, key, obj, opts...)
		},
	})
	got, mistakes, err := Resolve(t.Context(), seed, namespace, resources("Secret"), config())
	if err != nil || len(mistakes) > 0 {
		t.Fatal(mistakes, err)
	}
	for _, upstream := range []string{"private.test", "other.test"} {
		if c := got[upstream].Credentials; c == nil || string(c.Username) != "@robot" || string(c.Password) != "a'b#c$d" {
			t.Errorf("credentials of %s = %v", upstream, c)
		}
	}
	if got["public.test"].Credentials != nil {
		t.Error("public.test has credentials")
	}
	if reads != 1 {
		t.Errorf("the Secret was read %d times, want once", reads)
	}
}

func TestResolveAccessKey(t *testing.T) {
	const upstream = "123456789012.dkr.ecr.eu-central-1.amazonaws.com"
	secret := login(func(s *corev1.Secret) {
		s.Data = map[string][]byte{
			"accessKeyID": []byte("AKIA"), "secretAccessKey": []byte("s3cr3t"), "sessionToken": []byte("token"), "roleARN": []byte("arn:aws:iam::123456789012:role/r"),
		}
	})
	config := &v1alpha3.RegistryConfig{Caches: []v1alpha3.RegistryCache{{Upstream: upstream, SecretReferenceName: ptr.To("login")}}}
	got, mistakes, err := Resolve(t.Context(), fake.NewFakeClient(secret), namespace, resources("Secret"), config)
	if err != nil || len(mistakes) > 0 {
		t.Fatal(mistakes, err)
	}
	key := got[upstream].AccessKey
	if got[upstream].Credentials != nil || key == nil || string(key.ID) != "AKIA" || string(key.Secret) != "s3cr3t" ||
		string(key.SessionToken) != "token" || string(key.RoleARN) != "arn:aws:iam::123456789012:role/r" {
		t.Errorf("the access key is %+v", key)
	}
}
