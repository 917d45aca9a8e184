//go:build e2e

package nodeless

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gardener-extensions/registry-cache/bench"
	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/command"
	"github.com/gardener-extensions/registry-cache/kind/gardener"
	"github.com/gardener-extensions/registry-cache/kind/nodeimage"
	"github.com/gardener-extensions/registry-cache/kind/progress"
)

const (
	controllerManager   = "kube-controller-manager"
	extensionName       = "registry-cache-extension"
	resourceManagerName = "gardener-resource-manager"
)

// programs maps the name of a program to the path of its binary.
type programs map[string]string

// build builds the programs and returns their paths. Kubernetes and etcd come from the build cache
// of the node image. The others stay in the folder bin, so that go build links only what has
// changed.
func build(ctx context.Context) (programs, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, buildTimeout, fmt.Errorf("the build took longer than %s", buildTimeout))
	defer cancel()
	built, err := nodeimage.Programs(ctx, nodeimage.Options{Progress: progress.New(os.Stderr)}, bench.APIServer, bench.Etcd, controllerManager)
	if err != nil {
		return nil, err
	}
	folder, err := filepath.Abs(filepath.Join("..", "..", "bin"))
	if err != nil {
		return nil, fmt.Errorf("find the folder of the binaries: %w", err)
	}
	for _, binary := range []struct{ name, source, flags string }{
		{extensionName, kind.ModulePath + "/cmd/registry-cache-extension", ""},
		{resourceManagerName, gardener.ResourceManagerPackage, gardener.Ldflags},
	} {
		built[binary.name] = filepath.Join(folder, binary.name)
		if _, err := command.Output(ctx, "go", "build", "-ldflags", binary.flags, "-o", built[binary.name], binary.source); err != nil {
			return nil, err
		}
	}
	return built, nil
}
