package cluster

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gardener-extensions/registry-cache/kind/command"
)

// Origin says which folder of this machine the cluster's kubeconfig was written to when it was created (Config.Kubeconfig), and
// whether its control plane runs. The folder is empty where there is no control plane, and for one that nobody audits: kind gives
// nodes no label of ours, and what tells is the mount of the audit policy, which stays as long as the container.
func Origin(ctx context.Context, name string) (folder string, running bool, err error) {
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
		return "", false, fmt.Errorf("asking where cluster %s comes from: %w", name, err)
	}
	mounted := strings.TrimSpace(out)
	if mounted == "" {
		return "", false, nil
	}
	return filepath.Dir(mounted), found[i].alive(), nil
}

// alive tells whether the container has processes, be they frozen.
func (c container) alive() bool {
	return slices.Contains([]string{"running", "paused", "restarting"}, c.state)
}
