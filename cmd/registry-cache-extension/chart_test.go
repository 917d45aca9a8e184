package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/pflag"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/internal/golden"
)

func newFlags(options *options) *pflag.FlagSet {
	flags := pflag.NewFlagSet("registry-cache-extension", pflag.ContinueOnError)
	options.all.AddFlags(flags)
	return flags
}

// TestChartPassesValidFlags parses the rendered chart's arguments and variables: an unknown flag, a
// rejected value or a missing variable would crash the pod.
func TestChartPassesValidFlags(t *testing.T) {
	const namespace = "extension-" + v1alpha3.ExtensionType
	access := filepath.Join(t.TempDir(), "kubeconfig")
	const kubeconfig = `{clusters: [{name: seed, cluster: {server: "https://seed.test"}}], contexts: [{name: seed, context: {cluster: seed}}], current-context: seed}`
	if err := os.WriteFile(access, []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, container := range golden.Containers(t, "../../charts/testdata/registry-cache-extension") {
		t.Run(name, func(t *testing.T) {
			for _, variable := range container.Env {
				t.Setenv(variable.Name, namespace)
			}
			options := newOptions()
			flags := newFlags(options)
			if err := flags.Parse(container.Args); err != nil || flags.NArg() > 0 {
				t.Fatalf("%q: %v, %q are no flags", container.Args, err, flags.Args())
			}
			options.rest.Kubeconfig = access // instead of in-cluster access
			if err := options.complete(); err != nil {
				t.Errorf("%q: %v", container.Args, err)
			}
			for user, got := range map[string]string{
				"the leader election": options.manager.LeaderElectionNamespace,
				"the heartbeat":       options.heartbeat.Namespace,
				"the webhook":         options.webhook.Server.Namespace,
			} {
				if got != namespace {
					t.Errorf("%s uses namespace %q", user, got)
				}
			}
		})
	}
}

// TestTemplateNamesKnownFlags checks all flags, even those that no test case of the chart renders.
func TestTemplateNamesKnownFlags(t *testing.T) {
	flags := newFlags(newOptions())
	for _, name := range golden.Flags(t, "../../charts/registry-cache-extension/templates/deployment.yaml") {
		if flags.Lookup(name) == nil {
			t.Errorf("there is no flag --%s", name)
		}
	}
}
