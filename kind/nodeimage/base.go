package nodeimage

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gardener-extensions/registry-cache/kind/nodeimage/filetree"
)

// kindFiles returns the files of kind's base image, including those that RUN lines of the
// Dockerfile create, and the sandbox image in kind's containerd configuration. kindDir is the
// folder of kind's module.
func kindFiles(kindDir, kubernetesVersion string) (entries []filetree.Entry, sandboxImage string, err error) {
	files, err := baseFiles(os.DirFS(filepath.Join(kindDir, "images/base/files")))
	if err != nil {
		return nil, "", err
	}
	config, err := content(files, "/etc/containerd/config.toml")
	if err != nil {
		return nil, "", err
	}
	if sandboxImage, err = readSandboxImage(config); err != nil {
		return nil, "", err
	}
	links, err := enable(files)
	if err != nil {
		return nil, "", err
	}
	return append(slices.Concat(files, links, settings), filetree.Text("/kind/version", kubernetesVersion)), sandboxImage, nil
}

// settings are files and folders that RUN lines of the Dockerfile create, and one of the testbed.
var settings = []filetree.Entry{
	// Go's garbage collector runs less often in containerd, the kubelet and gardener-node-agent,
	// because the testbed has more spare memory than spare CPU time. The second variable makes
	// gardener-node-agent run with a Kubernetes that it does not support.
	filetree.Text("/etc/systemd/system.conf.d/registry-cache-testbed.conf",
		"[Manager]\nDefaultEnvironment=GOGC=300 EXPERIMENTAL_DISABLE_KUBERNETES_VERSION_CHECK=true\n"),
	filetree.Text("/etc/systemd/journald.conf.d/kind.conf", "[Journal]\nReadKMsg=no\n"),
	// The unit would register formats in binfmt_misc, which belongs to the host's kernel.
	filetree.Symlink("/etc/systemd/system/systemd-binfmt.service", "/dev/null"),
	filetree.Folder("/etc/kubernetes/manifests", 0o755),
	filetree.Folder("/etc/containerd/certs.d", 0o755),
}

// baseFiles returns all files with the modes that kind's Dockerfile sets.
func baseFiles(files fs.FS) ([]filetree.Entry, error) {
	var entries []filetree.Entry
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := fs.ReadFile(files, name)
		e := filetree.Text("/"+name, string(data))
		if dir := path.Dir(e.Path); dir == "/usr/local/bin" || dir == "/kind/bin" {
			e.Mode = 0o755
		}
		entries = append(entries, e)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading kind's base files: %w", err)
	}
	return entries, nil
}

func content(files []filetree.Entry, path string) (string, error) {
	i := slices.IndexFunc(files, func(e filetree.Entry) bool { return e.Path == path })
	if i < 0 {
		return "", fmt.Errorf("kind's base files have no %s", path)
	}
	return string(files[i].Content), nil
}

// enabledUnits are the units that kind's Dockerfile enables.
var enabledUnits = []string{"kubelet.service", "containerd.service", "undo-mount-hacks.service"}

// enable returns the symbolic links that `systemctl enable` would create for enabledUnits.
func enable(files []filetree.Entry) ([]filetree.Entry, error) {
	const systemd = "/etc/systemd/system/"
	var links []filetree.Entry
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
			links = append(links, filetree.Symlink(systemd+target+".wants/"+unit, systemd+unit))
		}
	}
	return links, nil
}

func wantedBy(unit string) []string {
	var targets []string
	for line := range strings.Lines(unit) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), "WantedBy="); ok {
			targets = append(targets, strings.Fields(value)...)
		}
	}
	return targets
}

// readSandboxImage returns the sandbox image in a configuration of containerd (version 2).
func readSandboxImage(config string) (string, error) {
	var parsed struct {
		Plugins map[string]struct {
			SandboxImage string `toml:"sandbox_image"`
		}
	}
	if err := toml.Unmarshal([]byte(config), &parsed); err != nil {
		return "", fmt.Errorf("read kind's configuration of containerd: %w", err)
	}
	image := parsed.Plugins["io.containerd.grpc.v1.cri"].SandboxImage
	if image == "" {
		return "", errors.New("kind's configuration of containerd names no sandbox image")
	}
	return image, nil
}

// containerSpec returns the node's cri-base.json. It is the output of `ctr oci spec` (generated)
// without resource limits, as in kind's Dockerfile. Kind also adds a hook that hides the product
// name and UUID of the host from containers. This file omits the hook, because it would start six
// processes per container, and no program of the testbed reads these values.
func containerSpec(generated string) (filetree.Entry, error) {
	var spec map[string]any
	if err := json.Unmarshal([]byte(generated), &spec); err != nil {
		return filetree.Entry{}, fmt.Errorf("reading the output of `ctr oci spec`: %w", err)
	}
	unstructured.RemoveNestedField(spec, "process", "rlimits")
	out, err := json.MarshalIndent(spec, "", "  ")
	return filetree.Text("/etc/containerd/cri-base.json", string(out)+"\n"), err
}
