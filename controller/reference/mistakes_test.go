package reference

import (
	"context"
	"errors"
	"strings"
	"testing"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/gardener-extensions/registry-cache/controller/retry"
)

func TestMistakes(t *testing.T) {
	for name, test := range map[string]struct {
		resources []gardencorev1beta1.NamedResourceReference
		secret    *corev1.Secret
		want      string
	}{
		"no entry":         {nil, login(nil), `caches[1].secretReferenceName: Invalid value: "login": must be the name of an entry of spec.resources`},
		"not a Secret":     {resources("ConfigMap"), login(nil), `caches[1].secretReferenceName: Invalid value: "login": must refer to a Secret of apiVersion v1, but the entry refers to a ConfigMap of apiVersion v1`},
		"not immutable":    {resources("Secret"), login(func(s *corev1.Secret) { s.Immutable = nil }), "must be immutable"},
		"without password": {resources("Secret"), login(func(s *corev1.Secret) { delete(s.Data, "password") }), "password"},
		"echoed":           {resources("Secret"), login(func(s *corev1.Secret) { s.Data["username"] = []byte("u\n") }), "has white space in the value of the key \"username\""},
		"no JSON":          {resources("Secret"), login(func(s *corev1.Secret) { s.Data["username"] = []byte("_json_key") }), "must have the JSON key of a service account"},
		"access key": {resources("Secret"), login(func(s *corev1.Secret) {
			s.Data = map[string][]byte{"accessKeyID": []byte("AKIA"), "secretAccessKey": []byte("s")}
		}), "has an access key of AWS, but private.test is not"},
	} {
		t.Run(name, func(t *testing.T) {
			seed := fake.NewFakeClient(test.secret)
			got, mistakes, err := Resolve(t.Context(), seed, namespace, test.resources, config())
			if err != nil || got != nil {
				t.Fatal(got, err)
			}
			text := mistakes.ToAggregate().Error()
			for _, want := range []string{test.want, "caches[1].secretReferenceName", "caches[2].secretReferenceName"} {
				if !strings.Contains(text, want) {
					t.Errorf("mistakes = %s, want %q", text, want)
				}
			}
		})
	}
}

// TestMissingIsNoMistake: gardenlet copies the Secret, perhaps a moment later.
func TestMissingIsNoMistake(t *testing.T) {
	_, mistakes, err := Resolve(t.Context(), fake.NewFakeClient(), namespace, resources("Secret"), config())
	if !retry.IsWaiting(err) || len(mistakes) > 0 || !strings.Contains(err.Error(), "Secret login-v1") {
		t.Errorf("mistakes %v, error %v", mistakes, err)
	}
}

// TestUnreadableIsNoMistake: the owner of the Shoot cannot fix an API server that does not answer.
func TestUnreadableIsNoMistake(t *testing.T) {
	refused := errors.New("connection refused")
	seed := interceptor.NewClient(fake.NewFakeClient(), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return refused
		},
	})
	_, mistakes, err := Resolve(t.Context(), seed, namespace, resources("Secret"), config())
	if !errors.Is(err, refused) || len(mistakes) > 0 {
		t.Errorf("mistakes %v, error %v", mistakes, err)
	}
}
