package charts

import (
	"os"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"k8s.io/utils/ptr"
)

const (
	admissionRuntime     = "registry-cache-admission/runtime"
	admissionApplication = "registry-cache-admission/application"
)

// TestAdmissionPodIsRestricted checks the pod security standard `restricted` and a read-only root
// file system.
func TestAdmissionPodIsRestricted(t *testing.T) {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	restricted := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	pods := 0
	for _, file := range valuesFiles(t, admissionRuntime) {
		manifest, err := render(t, admissionRuntime, readValues(t, file))
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range decode(t, manifest) {
			deployment, ok := object.(*appsv1.Deployment)
			if !ok {
				continue
			}
			pods++
			pod := deployment.Spec.Template
			if result := policy.AggregateCheckResults(evaluator.EvaluatePod(restricted, &pod.ObjectMeta, &pod.Spec)); !result.Allowed {
				t.Errorf("%s: %s: %s", file, result.ForbiddenReason(), result.ForbiddenDetail())
			}
			if !ptr.Deref(pod.Spec.Containers[0].SecurityContext.ReadOnlyRootFilesystem, false) {
				t.Errorf("%s: the container may write to its root file system", file)
			}
		}
	}
	if pods != 4 {
		t.Errorf("found %d Deployments, want one for each file of values", pods)
	}
}

// TestAdmissionReadsNoListOfSecrets: the admission must not list the Secrets of the garden, because
// the list reveals all credentials of all projects.
func TestAdmissionReadsNoListOfSecrets(t *testing.T) {
	manifest, err := render(t, admissionApplication, map[string]any{})
	if err != nil {
		t.Fatal(err)
	}
	rules := 0
	for _, object := range decode(t, manifest) {
		role, ok := object.(*rbacv1.ClusterRole)
		if !ok {
			continue
		}
		for _, rule := range role.Rules {
			rules++
			for _, verb := range rule.Verbs {
				if verb != "get" && verb != "create" && verb != "patch" || verb != "get" && rule.Resources[0] == "secrets" {
					t.Errorf("the rules allow %v with verb %s", rule.Resources, verb)
				}
			}
			if named := len(rule.ResourceNames) > 0; !named && rule.Resources[0] != "secrets" && rule.Verbs[0] != "create" {
				t.Errorf("rule %v names no object", rule)
			}
		}
	}
	if rules == 0 {
		t.Error("found no rule")
	}
}

// TestAdmissionRulesNameTheirCaller: a comment at each rule names the code that needs it.
func TestAdmissionRulesNameTheirCaller(t *testing.T) {
	for _, chart := range []string{admissionRuntime, admissionApplication} {
		template, err := os.ReadFile(chart + "/templates/rbac.yaml")
		if err != nil {
			t.Fatal(err)
		}
		previous := ""
		for line := range strings.Lines(string(template)) {
			if strings.HasPrefix(line, "- apiGroups:") && !strings.HasPrefix(previous, "#") && !strings.Contains(previous, "[create]") {
				t.Errorf("%s: no comment before the rule %q, but %q", chart, line, previous)
			}
			previous = line
		}
	}
}

func TestAdmissionVerticalPodAutoscaler(t *testing.T) {
	operator := map[string]any{"virtualCluster": map[string]any{"enabled": true}, "runtimeCluster": map[string]any{}}
	for name, test := range map[string]struct {
		vpa, gardener map[string]any
		want          bool
	}{
		"helm finds none":      {nil, nil, false},
		"gardener-operator":    {nil, operator, true},
		"on":                   {map[string]any{"enabled": true}, nil, true},
		"off for the operator": {map[string]any{"enabled": false}, operator, false},
	} {
		t.Run(name, func(t *testing.T) {
			values := map[string]any{"image": map[string]any{"ref": "a/b:c"}}
			if test.vpa != nil {
				values["vpa"] = test.vpa
			}
			if test.gardener != nil {
				values["gardener"] = test.gardener
			}
			manifest, err := render(t, admissionRuntime, values)
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Contains(string(manifest), "kind: VerticalPodAutoscaler"); got != test.want {
				t.Errorf("has a VerticalPodAutoscaler: %t, want %t", got, test.want)
			}
		})
	}
}

func TestAdmissionValuesSchema(t *testing.T) {
	for name, test := range map[string]struct {
		chart  string
		values map[string]any
		want   string
	}{
		"unknown value":      {admissionRuntime, map[string]any{"image": map[string]any{"ref": "a"}, "replicas": 2}, "replicas"},
		"log level":          {admissionRuntime, map[string]any{"image": map[string]any{"ref": "a"}, "logLevel": "loud"}, "logLevel"},
		"port":               {admissionRuntime, map[string]any{"image": map[string]any{"ref": "a"}, "metricsPort": 0}, "metricsPort"},
		"no image":           {admissionRuntime, map[string]any{}, "image.tag or image.ref is required"},
		"half a kubeconfig":  {admissionRuntime, map[string]any{"image": map[string]any{"ref": "a"}, "projectedKubeconfig": map[string]any{"baseMountPath": "/a"}}, "tokenSecretName"},
		"no service account": {admissionApplication, map[string]any{"gardener": map[string]any{"virtualCluster": map[string]any{"serviceAccount": map[string]any{"name": "a"}}}}, "namespace"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := render(t, test.chart, test.values); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error = %v, want one that names %q", err, test.want)
			}
		})
	}
}
