package finding

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/gardener-extensions/registry-cache/kind/diagnostics/bundle"
	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

// folders reports workers whose containerd does not look for hosts.toml files where they are: it asks no cache, and says nothing.
func folders(b *bundle.Bundle) []Finding {
	if b.Sleeps() || len(b.Cached()) == 0 {
		return nil
	}
	var all []Finding
	for _, node := range b.Workers() {
		if node.Config == nil {
			continue
		}
		if problem, certain := folderProblem(*node.Config); problem != "" {
			all = append(all, Finding{
				Certain: certain, Problem: fmt.Sprintf("containerd's configuration on %s %s.", node.Name, problem), File: node.File(bundle.ConfigFile),
				Details: []string{fmt.Sprintf("config_path is %q; containerd runs with what it was at its start", node.Config.Path)},
				Fix:     "config_path has to be " + nodeconfig.CertsDir + " alone, and containerd to be restarted after a change",
			})
		}
	}
	return all
}

// folderProblem says why containerd does not read the hosts.toml files; it is empty when it does.
func folderProblem(config bundle.Config) (problem string, certain bool) {
	all := filepath.SplitList(config.Path)
	switch ours := slices.IndexFunc(all, func(folder string) bool { return filepath.Clean(folder) == nodeconfig.CertsDir }); {
	case len(all) == 0:
		return "has no config_path: it asks no cache", true
	case ours < 0:
		return "has a config_path that is not " + nodeconfig.CertsDir + ", where the hosts.toml files are: it asks no cache", true
	case len(all) > 1 && config.Transfer:
		return "has several folders as config_path, which the transfer service takes for one (containerd#12415): it asks no cache", true
	case ours > 0:
		return "has a folder before " + nodeconfig.CertsDir + ": what is there for an upstream hides our hosts.toml", false
	default:
		return "", false
	}
}
