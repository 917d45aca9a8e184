package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"
)

const (
	chart    = "../../charts/registry-cache-extension"
	rendered = "../../charts/testdata/registry-cache-extension"
)

func newFlags(options *options) *pflag.FlagSet {
	flags := pflag.NewFlagSet("registry-cache-extension", pflag.ContinueOnError)
	options.all.AddFlags(flags)
	return flags
}

// TestChartPassesValidFlags gives the command what the chart renders to, arguments and variables: an unknown flag there, a
// value that is refused, or a variable that is missing is a pod that crashes.
func TestChartPassesValidFlags(t *testing.T) {
	cases, err := filepath.Glob(rendered + "/*.values.yaml")
	if err != nil || len(cases) < 2 {
		t.Fatalf("the chart is rendered with %q only, %v", cases, err)
	}
	access := filepath.Join(t.TempDir(), "kubeconfig")
	const kubeconfig = `{clusters: [{name: seed, cluster: {server: "https://seed.test"}}], contexts: [{name: seed, context: {cluster: seed}}], current-context: seed}`
	if err := os.WriteFile(access, []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, values := range cases {
		name := strings.TrimSuffix(values, ".values.yaml")
		t.Run(filepath.Base(name), func(t *testing.T) {
			containers := deployment(t, name+".yaml").Spec.Template.Spec.Containers
			if len(containers) != 1 || len(containers[0].Args) == 0 {
				t.Fatalf("the chart has the containers %+v", containers)
			}
			const namespace = "extension-registry-cache"
			for _, variable := range containers[0].Env {
				t.Setenv(variable.Name, namespace)
			}
			options := newOptions()
			flags := newFlags(options)
			if err := flags.Parse(containers[0].Args); err != nil || flags.NArg() > 0 {
				t.Fatalf("%q: %v, %q are no flags", containers[0].Args, err, flags.Args())
			}
			options.rest.Kubeconfig = access // in place of the one that a pod has
			if err := options.complete(); err != nil {
				t.Errorf("%q: %v", containers[0].Args, err)
			}
			for user, got := range map[string]string{
				"the leader election": options.manager.LeaderElectionNamespace,
				"the heartbeat":       options.heartbeat.Namespace,
				"the webhook":         options.webhook.Server.Namespace,
			} {
				if got != namespace {
					t.Errorf("%s works in namespace %q", user, got)
				}
			}
		})
	}
}

// TestTemplateNamesKnownFlags sees the flags, too, that no case of the chart's tests renders.
func TestTemplateNamesKnownFlags(t *testing.T) {
	content, err := os.ReadFile(chart + "/templates/deployment.yaml")
	if err != nil {
		t.Fatal(err)
	}
	flags := newFlags(newOptions())
	named := regexp.MustCompile(`(?m)^ +- --([a-z-]+)`).FindAllSubmatch(content, -1)
	if len(named) == 0 {
		t.Fatal("the template names no flag")
	}
	for _, match := range named {
		if name := string(match[1]); flags.Lookup(name) == nil {
			t.Errorf("there is no flag --%s", name)
		}
	}
}

func deployment(t *testing.T, file string) *appsv1.Deployment {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for document := range strings.SplitSeq(string(content), "\n---\n") {
		if !strings.Contains(document, "\nkind: Deployment\n") {
			continue
		}
		result := &appsv1.Deployment{}
		if err := yaml.UnmarshalStrict([]byte(document), result); err != nil {
			t.Fatal(err)
		}
		return result
	}
	t.Fatalf("%s has no Deployment", file)
	return nil
}
