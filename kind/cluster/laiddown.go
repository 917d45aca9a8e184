package cluster

import (
	"fmt"
	"path"
	"slices"
	"strings"

	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"sigs.k8s.io/yaml"
)

// removableDirs are the directories in which a file of the OperatingSystemConfig is removed; what lies elsewhere may
// belong to the image.
var removableDirs = []string{"/etc/systemd/system/", "/opt/bin/"}

// keptUnits belong to the image; the OperatingSystemConfig adds drop-ins to them at most.
var keptUnits = []string{"containerd.service", "kubelet.service"}

// laidDown is what an OperatingSystemConfig has put on a node.
type laidDown struct {
	units []string // without those of the image
	paths []string // files and directories to remove
}

// parseLastApplied reads the OperatingSystemConfig that gardener-node-agent applied last. Only units' names and files'
// paths matter; unknown fields are for other versions.
func parseLastApplied(data []byte) (laidDown, error) {
	var osc extensionsv1alpha1.OperatingSystemConfig
	if err := yaml.Unmarshal(data, &osc); err != nil {
		return laidDown{}, fmt.Errorf("decoding the OperatingSystemConfig: %w", err)
	}
	var laid laidDown
	for _, unit := range append(osc.Spec.Units, osc.Status.ExtensionUnits...) {
		unitFile := "/etc/systemd/system/" + path.Base(unit.Name)
		for _, dropIn := range unit.DropIns {
			laid.add(unitFile + ".d/" + path.Base(dropIn.Name))
		}
		if slices.Contains(keptUnits, unit.Name) {
			continue
		}
		if !slices.Contains(laid.units, unit.Name) {
			laid.units = append(laid.units, unit.Name)
		}
		laid.add(unitFile)
	}
	for _, file := range append(osc.Spec.Files, osc.Status.ExtensionFiles...) {
		if removable(file.Path) {
			laid.add(path.Clean(file.Path))
		}
	}
	return laid, nil
}

func (l *laidDown) add(path string) {
	if !slices.Contains(l.paths, path) {
		l.paths = append(l.paths, path)
	}
}

func removable(file string) bool {
	cleaned := path.Clean(file)
	return slices.ContainsFunc(removableDirs, func(dir string) bool { return strings.HasPrefix(cleaned, dir) })
}
