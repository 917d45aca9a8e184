package main

import (
	"testing"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"k8s.io/client-go/rest"

	"github.com/gardener-extensions/registry-cache/webhook/shoot"
)

// TestManager proves that the scheme contains every type that the manager needs. Without one of
// them, the pod would crash at startup.
func TestManager(t *testing.T) {
	nowhere := &rest.Config{Host: "https://127.0.0.1:1"}
	options := newOptions()
	options.rest.Kubeconfig = write(t, "kubeconfig", kubeconfig)
	options.manager.LeaderElectionNamespace = "garden"
	options.manager.MetricsBindAddress = "0"
	options.manager.HealthBindAddress = "0"
	options.manager.LogLevel, options.manager.LogFormat = "info", "json"
	if err := options.complete(); err != nil {
		t.Fatal(err)
	}
	if got := options.rest.Completed().Config.Host; got != "https://garden.test" {
		t.Errorf("the garden is %s", got)
	}
	mgr, err := newManager(options, nowhere, nowhere)
	if err != nil {
		t.Fatal(err)
	}
	if !mgr.GetScheme().Recognizes(gardencorev1beta1.SchemeGroupVersion.WithKind("Shoot")) {
		t.Error("the scheme has no Shoot")
	}
	if _, err := shoot.New(mgr); err != nil {
		t.Error(err)
	}
	if _, err := newRuntimeCluster(nowhere); err != nil {
		t.Error(err)
	}
}

func TestGardenKubeconfigOfTheOperator(t *testing.T) {
	t.Setenv("GARDEN_KUBECONFIG", write(t, "kubeconfig", kubeconfig))
	options := newOptions()
	options.manager.LogLevel, options.manager.LogFormat = "info", "json"
	if err := options.complete(); err != nil {
		t.Fatal(err)
	}
	if got := options.rest.Completed().Config.Host; got != "https://garden.test" {
		t.Errorf("the garden is %s", got)
	}
}

const kubeconfig = `apiVersion: v1
kind: Config
current-context: garden
contexts: [{name: garden, context: {cluster: garden, user: garden}}]
clusters: [{name: garden, cluster: {server: "https://garden.test"}}]
users: [{name: garden, user: {token: t}}]
`
