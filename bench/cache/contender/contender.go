// Package contender starts what the benchmark compares, each as a process with an empty volume:
// this repository's cache, stock distribution, nginx. Direct is no process: clients ask the
// upstream.
//
// The package must not know what is measured.
package contender

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gardener-extensions/registry-cache/bench/daemon"
)

// Names of the contenders.
const (
	Ours   = "ours"
	Stock  = "stock"
	Nginx  = "nginx"
	Direct = "direct"
)

// Names lists the contenders in the order of tables.
var Names = []string{Ours, Stock, Nginx, Direct}

// Programs are paths of binaries by name of the contender.
type Programs map[string]string

// Site is where a contender runs.
type Site struct {
	Upstream string // URL
	Volume   string // an empty folder
	Folder   string // for its configuration and log
}

// Instance is a running contender.
type Instance struct {
	URL     string
	process *daemon.Process // nil for Direct
}

// ports are those on which a contender listens.
type ports struct{ serve, debug string }

// Start returns when the contender is ready. The caller must stop it.
func Start(ctx context.Context, name string, programs Programs, site Site) (*Instance, error) {
	if name == Direct {
		return &Instance{URL: site.Upstream}, nil
	}
	free, err := daemon.FreePorts(2)
	if err != nil {
		return nil, err
	}
	listen := ports{serve: "127.0.0.1:" + free[0], debug: "127.0.0.1:" + free[1]}
	text, arguments, ready := configure(name, site, listen)
	file := filepath.Join(site.Folder, name+".conf")
	if err := errors.Join(os.MkdirAll(site.Folder, 0o755), os.WriteFile(file, []byte(text), 0o600)); err != nil {
		return nil, fmt.Errorf("configure %s: %w", name, err)
	}
	process, err := daemon.Start(ctx, daemon.Options{
		Name: "contender-" + name, Program: programs[name], Arguments: append(arguments, file), Folder: site.Folder,
		Environment: []string{"OTEL_TRACES_EXPORTER=none"}, Ready: "http://" + ready,
	})
	if err != nil {
		return nil, err
	}
	return &Instance{URL: "http://" + listen.serve, process: process}, nil
}

func configure(name string, site Site, listen ports) (text string, arguments []string, ready string) {
	switch name {
	case Nginx:
		return nginx(site, listen), []string{"-e", filepath.Join(site.Folder, "nginx.error.log"), "-c"}, listen.serve + "/ready"
	case Stock:
		return distribution(site, listen) + stockKeys, []string{"serve"}, listen.debug + "/debug/health"
	default:
		return distribution(site, listen) + ourKeys, []string{"serve"}, listen.debug + "/debug/health"
	}
}

// Stop ends the contender.
func (i *Instance) Stop() error {
	if i.process == nil {
		return nil
	}
	return i.process.Stop()
}
