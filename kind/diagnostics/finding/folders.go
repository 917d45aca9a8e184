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
		if problem := folderProblem(*node.Config); problem != "" {
			all = append(all, Finding{
				Certain: true, Problem: fmt.Sprintf("containerd of %s asks no cache: %s.", node.Name, problem), File: node.File(bundle.ConfigFile),
				Details: []string{fmt.Sprintf("config_path is %q; containerd has what it was when it was started", node.Config.Path)},
				Fix:     "config_path has to be " + nodeconfig.CertsDir + " alone, and containerd to be restarted after a change",
			})
		}
	}
	return all
}

// folderProblem says why containerd does not read the hosts.toml files; it is empty when it does.
func folderProblem(config bundle.Config) string {
	switch all := filepath.SplitList(config.Path); {
	case len(all) == 0:
		return "it has no config_path"
	case !slices.ContainsFunc(all, func(folder string) bool { return filepath.Clean(folder) == nodeconfig.CertsDir }):
		return "its config_path is not " + nodeconfig.CertsDir + ", where the hosts.toml files are"
	case len(all) > 1 && config.Transfer:
		return "its transfer service takes several folders for the name of one (containerd#12415)"
	default:
		return ""
	}
}
