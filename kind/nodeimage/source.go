package nodeimage

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/mod/modfile"

	"github.com/gardener-extensions/registry-cache/kind/command"
)

const (
	ownModule        = "github.com/gardener-extensions/registry-cache"
	kindModule       = "sigs.k8s.io/kind"
	kubernetesModule = "k8s.io/kubernetes"
	localPathModule  = "github.com/rancher/local-path-provisioner"
)

// source is the location of the inputs on this machine.
type source struct {
	modules string // the folder with the build modules
	// kindDir is the folder of kind's module, and kindVersion the required version.
	kindDir, kindVersion string
}

// toolchain returns the compiler version and the architecture, which both determine the programs.
func toolchain() string { return runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH }

// locate asks the go command, run in the folder dir, for the inputs. An empty dir means the current
// folder.
func locate(ctx context.Context, dir string) (source, error) {
	out, err := command.Output(ctx, "go", "-C", cmp.Or(dir, "."), "list", "-m", "-f", "{{.Path}}\t{{.Version}}\t{{.Dir}}", ownModule, kindModule)
	if err != nil {
		return source{}, fmt.Errorf("finding the sources of the node image (run this inside the repository): %w", err)
	}
	return parseLocation(out)
}

// parseLocation parses one line per module: path, version and folder, separated by tabs.
func parseLocation(lines string) (source, error) {
	var s source
	for line := range strings.Lines(lines) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(fields) != 3 || fields[2] == "" {
			return source{}, fmt.Errorf("the module %s is not on this machine: run `go mod download`", fields[0])
		}
		switch fields[0] {
		case ownModule:
			s.modules = filepath.Join(fields[2], "kind/nodeimage/modules")
		case kindModule:
			s.kindVersion, s.kindDir = fields[1], fields[2]
		}
	}
	return s, nil
}

// moduleDir returns the folder of a module that a build module requires. It downloads the module
// if necessary.
func (s source) moduleDir(ctx context.Context, buildModule, module string) (string, error) {
	var download string
	err := retry(ctx, fetchBackoff, "fetching the Go module "+module, func(ctx context.Context) (err error) {
		download, err = command.Output(ctx, "go", "-C", filepath.Join(s.modules, buildModule), "mod", "download", "-json", module)
		return err
	})
	if err != nil {
		return "", err
	}
	return parseDownload(download)
}

func parseDownload(output string) (string, error) {
	var module struct{ Dir string }
	if err := json.Unmarshal([]byte(output), &module); err != nil {
		return "", fmt.Errorf("reading the output of `go mod download`: %w", err)
	}
	return module.Dir, nil
}

// pinnedVersions returns the version of each module that a go.mod requires.
func pinnedVersions(name string, goMod []byte) (map[string]string, error) {
	file, err := modfile.ParseLax(name, goMod, nil)
	if err != nil {
		return nil, fmt.Errorf("reading the pinned versions: %w", err)
	}
	versions := map[string]string{}
	for _, require := range file.Require {
		versions[require.Mod.Path] = require.Mod.Version
	}
	return versions, nil
}
