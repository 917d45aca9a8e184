package nodeimage

import (
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// kindFiles is the folder of the base image's files in kind's module.
const kindFiles = "images/base/files"

// containerdConfigFile is the path of containerd's configuration on a node.
const containerdConfigFile = "/etc/containerd/config.toml"

// baseFiles returns the files in kindFiles with the modes that kind's Dockerfile sets.
func baseFiles(files fs.FS) ([]entry, error) {
	var entries []entry
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := fs.ReadFile(files, name)
		e := text("/"+name, string(data))
		if dir := path.Dir(e.path); dir == usrLocalBin || dir == "/kind/bin" {
			e.mode = 0o755
		}
		entries = append(entries, e)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading kind's base files: %w", err)
	}
	return entries, nil
}

// enabledUnits are the units that kind's Dockerfile enables.
var enabledUnits = []string{"kubelet.service", "containerd.service", "undo-mount-hacks.service"}

// enable returns the symbolic links that `systemctl enable` would create for enabledUnits.
func enable(files []entry) ([]entry, error) {
	const systemd = "/etc/systemd/system/"
	var links []entry
	for _, unit := range enabledUnits {
		text, err := content(files, systemd+unit)
		if err != nil {
			return nil, err
		}
		targets := wantedBy(text)
		if len(targets) == 0 {
			return nil, fmt.Errorf("unit %s of kind's base files has no WantedBy=", unit)
		}
		for _, target := range targets {
			links = append(links, symlink(systemd+target+".wants/"+unit, systemd+unit))
		}
	}
	return links, nil
}

// wantedBy returns the targets in the WantedBy= lines of a unit.
func wantedBy(unit string) []string {
	var targets []string
	for line := range strings.Lines(unit) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), "WantedBy="); ok {
			targets = append(targets, strings.Fields(value)...)
		}
	}
	return targets
}

// content returns the content of the file at path.
func content(files []entry, path string) (string, error) {
	for _, e := range files {
		if e.path == path {
			return e.data, nil
		}
	}
	return "", fmt.Errorf("kind's base files have no %s", path)
}

// settings returns what other RUN lines of kind's Dockerfile change.
func settings() []entry {
	return []entry{
		text("/etc/systemd/journald.conf.d/kind.conf", "[Journal]\nReadKMsg=no\n"),
		// The unit would register formats in binfmt_misc, which belongs to the host's kernel.
		symlink("/etc/systemd/system/systemd-binfmt.service", "/dev/null"),
		folder("/etc/kubernetes/manifests", 0o755),
		folder("/etc/containerd/certs.d", 0o755),
		text("/kind/version", KubernetesVersion),
	}
}
