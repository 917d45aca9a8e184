package cache

import (
	"context"
	"embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/gardener-extensions/registry-cache/bench"
	"github.com/gardener-extensions/registry-cache/kind/command"
)

// Names of the contenders, and of the upstream. Direct runs no process: clients ask the upstream.
const (
	Ours     = "ours"
	Stock    = "stock"
	Nginx    = "nginx"
	Direct   = "direct"
	Upstream = "upstream"
)

// Contenders lists the contenders in the order of tables.
var Contenders = []string{Ours, Stock, Nginx, Direct}

const (
	stockModule  = "kind/image/distribution"
	stockLibrary = "github.com/distribution/distribution/v3"
)

// Prepare builds this repository's cache and stock distribution from the sources in the current
// folder, and finds nginx. It returns their paths and versions.
func Prepare(ctx context.Context, folder string) (programs, versions map[string]string, err error) {
	ours, stock := filepath.Join(folder, "registry-cache"), filepath.Join(folder, "stock-registry")
	nginx, err := exec.LookPath("nginx")
	if err != nil {
		return nil, nil, fmt.Errorf("find nginx, which Debian's package nginx-light installs into /usr/sbin: %w", err)
	}
	versions = map[string]string{}
	for _, step := range []struct {
		version string // the contender whose version the command prints
		command []string
	}{
		{"", []string{"go", "build", "-o", ours, "./cmd/registry-cache"}},
		{"", []string{"go", "build", "-C", stockModule, "-o", stock, stockLibrary + "/cmd/registry"}},
		{Ours, []string{"git", "describe", "--always", "--dirty"}},
		{Stock, []string{"go", "list", "-C", stockModule, "-m", "-f", "{{.Version}}", stockLibrary}},
		{Nginx, []string{"sh", "-c", `"$0" -v 2>&1`, nginx}},
	} {
		output, err := command.Output(ctx, step.command...)
		if err != nil {
			return nil, nil, err
		}
		if step.version != "" {
			versions[step.version] = strings.TrimPrefix(strings.TrimSpace(output), "nginx version: nginx/")
		}
	}
	return map[string]string{Ours: ours, Stock: stock, Upstream: stock, Nginx: nginx}, versions, nil
}

// site contains the folders and addresses with which a contender runs.
type site struct {
	Upstream     string // URL
	Volume       string // an empty folder
	Folder       string // for configuration and log
	Name         string // of the contender; startContender sets this and the addresses to listen on
	Serve, Debug string
}

// contender contains the URL and the process of one of Contenders, or of the upstream.
type contender struct {
	URL     string
	process *bench.Process // nil for Direct
}

// startContender returns when the contender is ready. The caller must stop it.
func startContender(ctx context.Context, name string, programs map[string]string, s site) (*contender, error) {
	if name == Direct {
		return &contender{URL: s.Upstream}, nil
	}
	free, err := bench.FreePorts(2)
	if err != nil {
		return nil, err
	}
	s.Name, s.Serve, s.Debug = name, "127.0.0.1:"+free[0], "127.0.0.1:"+free[1]
	text, err := configure(s)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(s.Folder, name+".conf")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, fmt.Errorf("configure %s: %w", name, err)
	}
	arguments, ready := []string{"serve", file}, s.Debug+"/debug/health"
	if name == Nginx {
		arguments, ready = []string{"-e", filepath.Join(s.Folder, "nginx.error.log"), "-c", file}, s.Serve+"/ready"
	}
	process, err := bench.Program{
		Name: name, Path: programs[name], Arguments: arguments, Environment: []string{"OTEL_TRACES_EXPORTER=none"},
		Folder: s.Folder, Ready: "http://" + ready,
	}.Start(ctx)
	if err != nil {
		return nil, err
	}
	return &contender{URL: "http://" + s.Serve, process: process}, nil
}

// configurations contains the templates for nginx and for distribution. The latter is for the
// upstream, this repository's cache and the stock distribution. The last two also get keys that the
// extension deploys.
//
//go:embed nginx.conf.tmpl distribution.yaml.tmpl
var configurations embed.FS

func configure(s site) (string, error) {
	file := "distribution.yaml.tmpl"
	if s.Name == Nginx {
		file = "nginx.conf.tmpl"
	}
	var text strings.Builder
	parsed, err := template.ParseFS(configurations, file)
	if err == nil {
		err = parsed.Execute(&text, s)
	}
	if err != nil {
		return "", fmt.Errorf("configure %s: %w", s.Name, err)
	}
	return text.String(), nil
}

// usage reads the usage, which is zero for Direct.
func (c *contender) usage() (bench.Usage, error) {
	if c.process == nil {
		return bench.Usage{}, nil
	}
	return c.process.Usage()
}

// stop ends the contender, if it was started.
func (c *contender) stop() error {
	if c == nil || c.process == nil {
		return nil
	}
	return c.process.Stop()
}
