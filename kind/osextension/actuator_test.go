package osextension

import (
	"strings"
	"testing"

	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"github.com/go-logr/logr"
)

func TestReconcile(t *testing.T) {
	for purpose, want := range map[extensionsv1alpha1.OperatingSystemConfigPurpose]struct {
		userData bool
		err      string
	}{
		extensionsv1alpha1.OperatingSystemConfigPurposeProvision: {userData: true}, // gardenlet waits for user data
		extensionsv1alpha1.OperatingSystemConfigPurposeReconcile: {},
		"decorate": {err: `unknown purpose "decorate"`},
	} {
		t.Run(string(purpose), func(t *testing.T) {
			osc := &extensionsv1alpha1.OperatingSystemConfig{Spec: extensionsv1alpha1.OperatingSystemConfigSpec{Purpose: purpose}}
			userData, units, files, _, err := actuator{}.Reconcile(t.Context(), logr.Discard(), osc)
			if (err == nil) != (want.err == "") || (err != nil && !strings.Contains(err.Error(), want.err)) {
				t.Fatalf("error %v, want %q", err, want.err)
			}
			if (userData != nil) != want.userData || len(units)+len(files) > 0 {
				t.Errorf("user data %q, units %v, files %v", userData, units, files)
			}
		})
	}
}
