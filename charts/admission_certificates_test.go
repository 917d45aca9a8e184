package charts

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
)

// TestAdmissionReachesItsCertificatesOnly: gardener-operator installs the chart in the namespace
// garden, which contains the keys of the garden. Names of certificate Secrets end in a hash, so a
// Role that covers them covers all Secrets of its namespace. If the webhook is registered by its
// Service, not by URL, these Secrets must be in the namespace of the Service.
func TestAdmissionReachesItsCertificatesOnly(t *testing.T) {
	const own = "gardener-extension-registry-cache-admission"
	for file, want := range map[string]string{"operator": own, "projected": own, "minimal": namespace, "full": namespace} {
		t.Run(file, func(t *testing.T) {
			manifest, err := render(t, admissionRuntime, readValues(t, "testdata/"+admissionRuntime+"/"+file+valuesSuffix))
			if err != nil {
				t.Fatal(err)
			}
			var roles, namespaces []string
			for _, object := range decode(t, manifest) {
				switch object := object.(type) {
				case *corev1.Namespace:
					namespaces = append(namespaces, object.Name)
				case *rbacv1.RoleBinding:
					if subject := object.Subjects[0]; subject.Namespace != namespace {
						t.Errorf("%s is for an account in %s", object.Name, subject.Namespace)
					}
				case *rbacv1.Role:
					if usesSecrets(t, object) {
						roles = append(roles, object.Namespace)
					}
				}
			}
			if !slices.Equal(roles, []string{want}) {
				t.Errorf("the Roles allow access to the Secrets of %v, want %s", roles, want)
			}
			if isOwn := want == own; slices.Contains(namespaces, own) != isOwn || len(namespaces) > 1 {
				t.Errorf("the chart creates the namespaces %v", namespaces)
			}
		})
	}
}

// usesSecrets returns whether the Role contains a rule for Secrets. It fails the test if the rule
// allows more verbs than needed.
func usesSecrets(t *testing.T, role *rbacv1.Role) bool {
	t.Helper()
	uses := false
	for _, rule := range role.Rules {
		if slices.Contains(rule.Resources, "secrets") {
			uses = true
			if want := []string{"get", "list", "create", "patch", "delete"}; !slices.Equal(rule.Verbs, want) {
				t.Errorf("Secrets may be used with %v, want %v", rule.Verbs, want)
			}
		}
	}
	return uses
}
