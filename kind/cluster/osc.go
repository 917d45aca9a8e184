package cluster

import (
	"fmt"
	"path"
	"slices"
	"strings"

	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"sigs.k8s.io/yaml"
)

// removableDirs are the directories from which files of an OperatingSystemConfig are removed. Files
// elsewhere may belong to the node image.
var removableDirs = []string{"/etc/systemd/system/", "/opt/bin/"}

// keptUnits belong to the node image. An OperatingSystemConfig can only add drop-ins to them.
var keptUnits = []string{"containerd.service", "kubelet.service"}

// appliedOSC is what an OperatingSystemConfig has put on a node.
type appliedOSC struct {
	units []string // without keptUnits
	paths []string // files and directories to remove
}

// parseLastApplied reads the OperatingSystemConfig that gardener-node-agent applied last. It
// ignores unknown fields, which belong to other versions.
func parseLastApplied(data []byte) (appliedOSC, error) {
	var osc extensionsv1alpha1.OperatingSystemConfig
	if err := yaml.Unmarshal(data, &osc); err != nil {
		return appliedOSC{}, fmt.Errorf("decoding the OperatingSystemConfig: %w", err)
	}
	var applied appliedOSC
	for _, unit := range append(osc.Spec.Units, osc.Status.ExtensionUnits...) {
		unitFile := "/etc/systemd/system/" + path.Base(unit.Name)
		for _, dropIn := range unit.DropIns {
			applied.add(unitFile + ".d/" + path.Base(dropIn.Name))
		}
		if slices.Contains(keptUnits, unit.Name) {
			continue
		}
		if !slices.Contains(applied.units, unit.Name) {
			applied.units = append(applied.units, unit.Name)
		}
		applied.add(unitFile)
	}
	for _, file := range append(osc.Spec.Files, osc.Status.ExtensionFiles...) {
		if removable(file.Path) {
			applied.add(path.Clean(file.Path))
		}
	}
	return applied, nil
}

func (l *appliedOSC) add(path string) {
	if !slices.Contains(l.paths, path) {
		l.paths = append(l.paths, path)
	}
}

func removable(file string) bool {
	cleaned := path.Clean(file)
	return slices.ContainsFunc(removableDirs, func(dir string) bool { return strings.HasPrefix(cleaned, dir) })
}
