package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/spf13/pflag"

	"github.com/gardener-extensions/registry-cache/internal/golden"
)

func newFlags(options *options) *pflag.FlagSet {
	flags := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	options.all.AddFlags(flags)
	return flags
}

// TestChartPassesValidFlags parses the rendered chart's arguments and variables: an unknown flag, a
// rejected value or a missing variable would crash the pod.
func TestChartPassesValidFlags(t *testing.T) {
	access := filepath.Join(t.TempDir(), "kubeconfig")
	const kubeconfig = `{clusters: [{name: garden, cluster: {server: "https://garden.test"}}], contexts: [{name: garden, context: {cluster: garden}}], current-context: garden}`
	if err := os.WriteFile(access, []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, container := range golden.Containers(t, "../../charts/testdata/registry-cache-admission/runtime") {
		t.Run(name, func(t *testing.T) {
			for _, variable := range container.Env {
				t.Setenv(variable.Name, "garden")
			}
			options := newOptions()
			flags := newFlags(options)
			if err := flags.Parse(container.Args); err != nil || !slices.Equal(flags.Args(), []string{"serve"}) {
				t.Fatalf("%q: %v, unexpected arguments %q", container.Args, err, flags.Args())
			}
			options.rest.Kubeconfig = access // instead of in-cluster access
			if err := options.complete(); err != nil {
				t.Errorf("%q: %v", container.Args, err)
			}
			if leader, webhook := options.manager.LeaderElectionNamespace, options.webhook.Server.Namespace; leader != "garden" || webhook != "garden" {
				t.Errorf("the leader election works in namespace %q, the webhook in %q", leader, webhook)
			}
		})
	}
}

// TestTemplateNamesKnownFlags checks all flags, even those that no test case of the chart renders.
func TestTemplateNamesKnownFlags(t *testing.T) {
	flags := newFlags(newOptions())
	for _, name := range golden.Flags(t, "../../charts/registry-cache-admission/runtime/templates/deployment.yaml") {
		if flags.Lookup(name) == nil {
			t.Errorf("there is no flag --%s", name)
		}
	}
}
