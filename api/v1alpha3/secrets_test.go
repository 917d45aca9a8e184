package v1alpha3_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func secret(immutable *bool, data map[string]string) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "s"}, Immutable: immutable, Data: map[string][]byte{}}
	for key, value := range data {
		s.Data[key] = []byte(value)
	}
	return s
}

// checkSecretErrors expects one error at the path that contains want, or none if want is empty.
func checkSecretErrors(t *testing.T, errs field.ErrorList, want string) {
	t.Helper()
	if want == "" && len(errs) == 0 {
		return
	}
	if want == "" || len(errs) != 1 || errs[0].Field != "caches[3].ref" || !strings.Contains(errs[0].Error(), "the Secret garden-dev/s "+want) {
		t.Errorf("got %v, want %q at caches[3].ref", errs, want)
	}
}

var secretPath = field.NewPath("caches").Index(3).Child("ref")
