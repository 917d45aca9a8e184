//go:build e2e

package rig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/kind/bringup"
	"github.com/gardener-extensions/registry-cache/kind/command"
	testbedconfig "github.com/gardener-extensions/registry-cache/kind/configuration"
)

// Access is an uncached client of a cluster's API, so a scenario always reads the current state.
type Access struct {
	client.Client
	Config  *rest.Config
	dynamic dynamic.Interface
}

// Connect returns an Access to the cluster.
func Connect(config *rest.Config, scheme *runtime.Scheme) (Access, error) {
	typed, err := client.New(config, client.Options{Scheme: scheme})
	untyped, untypedErr := dynamic.NewForConfig(config)
	if err := errors.Join(err, untypedErr); err != nil {
		return Access{}, fmt.Errorf("connect to %s: %w", config.Host, err)
	}
	return Access{Client: typed, Config: config, dynamic: untyped}, nil
}

// testedModules contains the short names of modules whose code the testbed or the extension uses.
var testedModules = map[string]string{
	"github.com/gardener/gardener":            "gardener",
	"github.com/distribution/distribution/v3": "distribution",
	"sigs.k8s.io/kind":                        "kind",
}

// sourceVersions returns the commit of the working tree, and the versions of Go and testedModules.
func sourceVersions(ctx context.Context) map[string]string {
	found := map[string]string{}
	if commit, err := command.Output(ctx, "git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"); err == nil {
		found["commit"] = strings.TrimSpace(commit)
	}
	if build, ok := debug.ReadBuildInfo(); ok {
		found["go"] = build.GoVersion
		for _, module := range build.Deps {
			if name := testedModules[module.Path]; name != "" {
				found[name] = module.Version
			}
		}
	}
	return found
}

// nodeVersions returns the versions that the shoot's first node reports, or nil without nodes.
func nodeVersions(ctx context.Context, shoot Access) map[string]string {
	nodes := &corev1.NodeList{}
	if err := shoot.List(ctx, nodes); err != nil || len(nodes.Items) == 0 {
		return nil
	}
	info := nodes.Items[0].Status.NodeInfo
	return map[string]string{
		"kubernetes": info.KubeletVersion, "containerRuntime": info.ContainerRuntimeVersion, "kernel": info.KernelVersion, "nodeImage": info.OSImage,
	}
}

// Artifacts is the folder of the results, relative to the root of the repository. A run with CONFIG
// uses a folder in it.
var Artifacts = "_artifacts"

// testbedConfiguration reads the file at path, the value of CONFIG, as `testbed up -f` does.
// Without CONFIG it returns the default testbed, even if a testbed with another configuration runs.
func testbedConfiguration(path string) (*testbedconfig.Testbed, error) {
	if path == "" {
		return testbedconfig.Default(), nil
	}
	Artifacts = filepath.Join(Artifacts, strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)))
	config, err := testbedconfig.Load(path)
	if err != nil {
		return nil, fmt.Errorf("CONFIG: %w", err)
	}
	return config, nil
}

// unavailable returns err, or skips all scenarios if err means that the testbed cannot run here.
func (s *Session) unavailable(err error) error {
	var missing *bringup.UnavailableError
	if !errors.As(err, &missing) {
		return err
	}
	s.skipped = missing.Error()
	fmt.Fprintf(os.Stdout, " - skipped: %s\n", s.skipped)
	return nil
}
