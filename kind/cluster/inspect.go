package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gardener-extensions/registry-cache/kind/command"
)

// clusterLabel is the label that kind sets on each container of a cluster.
const clusterLabel = "io.x-k8s.kind.cluster"

// absent is the reason to create a cluster that has no container.
const absent = "it does not exist"

// container is a line of docker ps.
type container struct {
	name, state, id string
}

// inspect returns why the cluster must be built: absent, or what is wrong with it. The reason is
// empty if nothing is wrong as far as the engine shows.
func inspect(ctx context.Context, config Config) (reason string, err error) {
	found, err := containers(ctx, config.Name)
	if err != nil {
		return "", err
	}
	names := nodeNames(config)
	if reason := assess(found, names); reason != "" {
		return reason, nil
	}
	c, err := find(ctx, config.Name)
	if err != nil {
		return "", err
	}
	marker, err := c.node(names[0]).ReadFile(ctx, createdMarker)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "its creation was interrupted", nil
	case err != nil && ctx.Err() == nil:
		return command.Tail(err.Error(), 1), nil
	case err != nil:
		return "", err
	case string(marker) != fingerprint(config):
		return "its configuration has changed", nil
	}
	return "", nil
}

// assess compares the existing containers with the expected names.
func assess(found []container, names []string) (reason string) {
	if len(found) == 0 {
		return absent
	}
	for _, name := range names {
		i := slices.IndexFunc(found, func(c container) bool { return c.name == name })
		if i < 0 {
			return name + " is missing"
		}
		if state := found[i].state; state != "running" {
			return name + " is " + state
		}
	}
	if len(found) != len(names) {
		return fmt.Sprintf("it has %d nodes instead of %d", len(found), len(names))
	}
	return ""
}

// Exists reports whether the cluster has a container, in whatever state.
func Exists(ctx context.Context, name string) (bool, error) {
	found, err := containers(ctx, name)
	return len(found) > 0, err
}

// StoppedNodes returns the names of the cluster's containers that are not running, each with its
// state, sorted.
func StoppedNodes(ctx context.Context, name string) ([]string, error) {
	found, err := containers(ctx, name)
	return stopped(found), err
}

func stopped(found []container) []string {
	var names []string
	for _, c := range found {
		if c.state != "running" {
			names = append(names, fmt.Sprintf("%s (%s)", c.name, c.state))
		}
	}
	slices.Sort(names)
	return names
}

// containers lists the cluster's containers, running or not.
func containers(ctx context.Context, name string) ([]container, error) {
	out, err := command.Output(ctx, "docker", "ps", "--all", "--filter", "label="+clusterLabel+"="+name,
		"--format", "{{.Names}} {{.State}} {{.ID}}", "--no-trunc")
	if err != nil {
		return nil, fmt.Errorf("listing the containers of cluster %s: %w", name, err)
	}
	var found []container
	for line := range strings.Lines(out) {
		if fields := strings.Fields(line); len(fields) == 3 {
			found = append(found, container{fields[0], fields[1], fields[2]})
		}
	}
	return found, nil
}

// KubeconfigFolder returns the folder of the kubeconfig that the cluster was created with
// (Config.Kubeconfig), and whether its control plane is running. The folder is empty if there is no
// control plane or if Config.Audited was empty: kind cannot add labels to nodes, so the folder is
// read from the mount of the audit policy, which lasts as long as the container.
func KubeconfigFolder(ctx context.Context, name string) (folder string, running bool, err error) {
	found, err := containers(ctx, name)
	if err != nil {
		return "", false, err
	}
	i := slices.IndexFunc(found, func(c container) bool { return c.name == nodeNames(Config{Name: name})[0] })
	if i < 0 {
		return "", false, nil
	}
	out, err := command.Output(ctx, "docker", "inspect", "--type", "container", "--format",
		`{{range .Mounts}}{{if eq .Destination "`+auditPolicyDir+`"}}{{.Source}}{{end}}{{end}}`, found[i].id)
	if err != nil {
		return "", false, fmt.Errorf("reading the mounts of cluster %s: %w", name, err)
	}
	mounted := strings.TrimSpace(out)
	if mounted == "" {
		return "", false, nil
	}
	return filepath.Dir(mounted), found[i].alive(), nil
}

// alive reports whether the container has processes, even frozen ones.
func (c container) alive() bool {
	return slices.Contains([]string{"running", "paused", "restarting"}, c.state)
}
