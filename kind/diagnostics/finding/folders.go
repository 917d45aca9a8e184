package finding

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/gardener-extensions/registry-cache/kind/diagnostics/bundle"
	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

// folders reports workers whose containerd does not read the hosts.toml files. It then uses no
// cache and logs nothing about it.
func folders(b *bundle.Bundle) []Finding {
	if b.Hibernated() || len(b.Cached()) == 0 {
		return nil
	}
	var all []Finding
	for _, node := range b.Workers() {
		if node.Config == nil {
			continue
		}
		if problem, certain := folderProblem(*node.Config); problem != "" {
			all = append(all, Finding{
				Certain: certain, Problem: fmt.Sprintf("containerd on %s %s.", node.Name, problem), File: node.File(bundle.ConfigFile),
				Details: []string{fmt.Sprintf("config_path is %q in the file; containerd read the file when it started", node.Config.Path)},
				Fix:     "set config_path to " + nodeconfig.CertsDir + " alone and restart containerd",
			})
		}
	}
	return all
}

// folderProblem returns why containerd does not read the hosts.toml files, or "" if it does.
func folderProblem(config bundle.Config) (problem string, certain bool) {
	all := filepath.SplitList(config.Path)
	switch i := slices.IndexFunc(all, func(folder string) bool { return filepath.Clean(folder) == nodeconfig.CertsDir }); {
	case len(all) == 0:
		return "uses no cache: it has no config_path", true
	case i < 0:
		return "uses no cache: its config_path does not have " + nodeconfig.CertsDir + ", where the hosts.toml files are", true
	case len(all) > 1 && config.Transfer:
		return "uses no cache: its transfer service takes the folders of config_path for a single one (containerd#12415)", true
	case i > 0:
		return "can miss caches: its config_path has another folder before " + nodeconfig.CertsDir + ", whose files win", false
	default:
		return "", false
	}
}
