package cache

import (
	"context"
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/gardener-extensions/registry-cache/bench"
)

// Names of the contenders. Direct is no process: clients ask the upstream.
const (
	Ours   = "ours"
	Stock  = "stock"
	Nginx  = "nginx"
	Direct = "direct"
)

// Contenders lists the contenders in the order of tables.
var Contenders = []string{Ours, Stock, Nginx, Direct}

// Programs are paths of binaries by name of the contender.
type Programs map[string]string

// site is where a contender runs: its upstream's URL, its volume, an empty folder, the folder for
// its configuration and log, and the addresses on which it listens.
type site struct {
	Upstream, Volume, Folder string
	Serve, Debug             string
}

// contender is a running contender.
type contender struct {
	URL     string
	process *bench.Process // nil for Direct
}

// startContender returns when the contender is ready. The caller must stop it.
func startContender(ctx context.Context, name string, programs Programs, s site) (*contender, error) {
	if name == Direct {
		return &contender{URL: s.Upstream}, nil
	}
	free, err := bench.FreePorts(2)
	if err != nil {
		return nil, err
	}
	s.Serve, s.Debug = "127.0.0.1:"+free[0], "127.0.0.1:"+free[1]
	text, err := configure(name, s)
	if err != nil {
		return nil, err
	}
	arguments, ready := []string{"serve"}, s.Debug+"/debug/health"
	if name == Nginx {
		arguments, ready = []string{"-e", filepath.Join(s.Folder, "nginx.error.log"), "-c"}, s.Serve+"/ready"
	}
	process, err := startConfigured(ctx, text, bench.Program{
		Name: "contender-" + name, Path: programs[name], Arguments: arguments, Folder: s.Folder, Ready: "http://" + ready,
	})
	return &contender{URL: "http://" + s.Serve, process: process}, err
}

// startConfigured starts a program with a configuration file as its last argument.
func startConfigured(ctx context.Context, text string, program bench.Program) (*bench.Process, error) {
	file := filepath.Join(program.Folder, program.Name+".conf")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, fmt.Errorf("configure %s: %w", program.Name, err)
	}
	program.Arguments = append(program.Arguments, file)
	program.Environment = []string{"OTEL_TRACES_EXPORTER=none"}
	return program.Start(ctx)
}

// configurations are those of nginx, and of this repository's cache and stock distribution, whose
// keys are those that the extension deploys.
//
//go:embed nginx.conf.tmpl distribution.yaml.tmpl
var configurations embed.FS

func configure(name string, s site) (string, error) {
	file := "distribution.yaml.tmpl"
	if name == Nginx {
		file = "nginx.conf.tmpl"
	}
	var text strings.Builder
	parsed, err := template.ParseFS(configurations, file)
	if err == nil {
		err = parsed.Execute(&text, map[string]any{
			"Ours": name == Ours, "Site": s, "UpstreamHost": strings.TrimPrefix(s.Upstream, "http://"),
		})
	}
	if err != nil {
		return "", fmt.Errorf("configure %s: %w", name, err)
	}
	return text.String(), nil
}

// Usage reads the usage. That of Direct is zero.
func (c *contender) Usage() (bench.Usage, error) {
	if c.process == nil {
		return bench.Usage{}, nil
	}
	return c.process.Usage()
}

// ResetPeak makes the kernel measure the peak from now on.
func (c *contender) ResetPeak() error {
	if c.process == nil {
		return nil
	}
	return c.process.ResetPeak()
}

// Stop ends the contender.
func (c *contender) Stop() error {
	if c.process == nil {
		return nil
	}
	return c.process.Stop()
}
