package charts

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"k8s.io/utils/ptr"
)

// TestRulesNameTheirCaller: a comment at each rule names the code that needs it.
func TestRulesNameTheirCaller(t *testing.T) {
	template, err := files.ReadFile(extensionChart + "/templates/rbac.yaml")
	if err != nil {
		t.Fatal(err)
	}
	previous := ""
	for line := range strings.Lines(string(template)) {
		if strings.HasPrefix(line, "rules:") {
			previous = "rules"
		}
		// The comment above the rule for create ("[create]") also covers the rule with resourceNames
		// after it: both have the same caller.
		if strings.HasPrefix(line, "- apiGroups:") && previous != "#" && !strings.Contains(previous, "[create]") {
			t.Errorf("no comment before the rule %q, but %q", line, previous)
		}
		if previous = strings.TrimRight(line, "\n"); strings.HasPrefix(line, "#") {
			previous = "#"
		}
	}
}

// TestNoWildcards: rules name every verb, resource and group.
func TestNoWildcards(t *testing.T) {
	manifest, err := render(t, extensionChart, readValues(t, extensionCases+"/full"+valuesSuffix))
	if err != nil {
		t.Fatal(err)
	}
	rules := 0
	for _, object := range decode(t, manifest) {
		var all []rbacv1.PolicyRule
		switch role := object.(type) {
		case *rbacv1.ClusterRole:
			all = role.Rules
		case *rbacv1.Role:
			all = role.Rules
		}
		for _, rule := range all {
			rules++
			for _, word := range append(append(rule.Verbs, rule.Resources...), rule.APIGroups...) {
				if strings.Contains(word, "*") {
					t.Errorf("rule %v contains a wildcard", rule)
				}
			}
		}
	}
	if rules == 0 {
		t.Error("found no rule")
	}
}

// TestPodIsRestricted checks the pod security standard `restricted` with Kubernetes' own code, and
// a read-only root file system.
func TestPodIsRestricted(t *testing.T) {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	restricted := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	for _, file := range valuesFiles(t, extensionChart) {
		t.Run(file, func(t *testing.T) {
			pod := extensionPod(t, file)
			if result := policy.AggregateCheckResults(evaluator.EvaluatePod(restricted, &pod.ObjectMeta, &pod.Spec)); !result.Allowed {
				t.Errorf("%s: %s", result.ForbiddenReason(), result.ForbiddenDetail())
			}
			for _, container := range pod.Spec.Containers {
				if context := container.SecurityContext; !ptr.Deref(context.ReadOnlyRootFilesystem, false) {
					t.Errorf("container %s may write to its root file system", container.Name)
				}
			}
		})
	}
}

func extensionPod(t *testing.T, values string) corev1.PodTemplateSpec {
	t.Helper()
	manifest, err := render(t, extensionChart, readValues(t, values))
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range decode(t, manifest) {
		if deployment, ok := object.(*appsv1.Deployment); ok {
			return deployment.Spec.Template
		}
	}
	t.Fatal("the chart contains no Deployment")
	return corev1.PodTemplateSpec{}
}
