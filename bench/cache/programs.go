package cache

import (
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/gardener-extensions/registry-cache/kind/command"
	"github.com/gardener-extensions/registry-cache/kind/engine"
)

const (
	ownPackage    = "./cmd/registry-cache"
	stockModule   = "kind/image/distribution"
	stockLibrary  = "github.com/distribution/distribution/v3"
	stockPackage  = stockLibrary + "/cmd/registry"
	debianPackage = "nginx-light"
)

// Prepare builds this repository's cache and stock distribution from the sources in the current
// folder, and installs nginx if it is missing. It returns their paths and versions.
func Prepare(ctx context.Context, folder string) (Programs, map[string]string, error) {
	programs := Programs{
		Ours: filepath.Join(folder, "registry-cache"), Stock: filepath.Join(folder, "stock-registry"),
	}
	if _, err := command.Output(ctx, "go", "build", "-o", programs[Ours], ownPackage); err != nil {
		return nil, nil, err
	}
	if _, err := command.Output(ctx, "go", "build", "-C", stockModule, "-o", programs[Stock], stockPackage); err != nil {
		return nil, nil, err
	}
	nginx, err := findNginx(ctx)
	if err != nil {
		return nil, nil, err
	}
	programs[Nginx] = nginx
	versions, err := versionsOf(ctx, programs)
	return programs, versions, err
}

// findNginx looks into the folder of Debian's package too, which is not in every user's PATH.
func findNginx(ctx context.Context) (string, error) {
	const installed = "/usr/sbin/nginx"
	if path, err := exec.LookPath("nginx"); err == nil {
		return path, nil
	}
	if _, err := os.Stat(installed); err == nil {
		return installed, nil
	}
	if os.Geteuid() != 0 {
		return "", errors.New("nginx not found; install it, as on Debian with apt-get install " + debianPackage)
	}
	return installed, engine.InstallPackages(ctx, debianPackage)
}

func versionsOf(ctx context.Context, programs Programs) (map[string]string, error) {
	commit, err := command.Output(ctx, "git", "describe", "--always", "--dirty")
	if err != nil {
		return nil, err
	}
	stock, err := buildinfo.ReadFile(programs[Stock])
	if err != nil {
		return nil, fmt.Errorf("version of stock distribution: %w", err)
	}
	// nginx prints its version to standard error.
	nginx, err := exec.CommandContext(ctx, programs[Nginx], "-v").CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("version of nginx: %w", err)
	}
	versions := map[string]string{Ours: strings.TrimSpace(commit)}
	_, versions[Nginx], _ = strings.Cut(strings.TrimSpace(string(nginx)), "nginx/")
	for _, module := range append(stock.Deps, &stock.Main) {
		if module.Path == stockLibrary {
			versions[Stock] = module.Version
		}
	}
	return versions, nil
}
