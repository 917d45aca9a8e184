package nodeimage

import (
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/gardener-extensions/registry-cache/internal/golden"
	"github.com/gardener-extensions/registry-cache/kind/nodeimage/filetree"
)

func TestBaseFilesHaveTheModesOfTheDockerfile(t *testing.T) {
	files, err := baseFiles(fstest.MapFS{
		"usr/local/bin/entrypoint":      {Data: []byte("#!"), Mode: 0o444},
		"kind/bin/undo-mount-hacks.sh":  {Data: []byte("#!"), Mode: 0o444},
		"kind/README.txt":               {Data: []byte("dragons"), Mode: 0o444},
		"etc/systemd/system/k.service":  {Data: []byte("[Unit]"), Mode: 0o444},
		"etc/systemd/system/d/k.config": {Data: []byte("x"), Mode: 0o444},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]fs.FileMode{
		"/usr/local/bin/entrypoint": 0o755, "/kind/bin/undo-mount-hacks.sh": 0o755, "/kind/README.txt": 0o644,
		"/etc/systemd/system/k.service": 0o644, "/etc/systemd/system/d/k.config": 0o644,
	}
	for _, file := range files {
		if file.Mode != want[file.Path] {
			t.Errorf("%s has mode %o, want %o", file.Path, file.Mode, want[file.Path])
		}
	}
	if len(files) != len(want) {
		t.Errorf("%d files, want %d", len(files), len(want))
	}
}

func TestEnable(t *testing.T) {
	units := func(installs ...string) []filetree.Entry {
		var files []filetree.Entry
		for i, unit := range enabledUnits {
			files = append(files, filetree.Text("/etc/systemd/system/"+unit, installs[i]))
		}
		return files
	}
	links, err := enable(units("[Install]\nWantedBy=multi-user.target\n", "[Install]\nWantedBy=a.target b.target\n", "[Install]\nWantedBy=c.target"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, link := range links {
		got = append(got, link.Path+" "+link.Link)
	}
	const dir = "/etc/systemd/system/"
	want := []string{
		dir + "multi-user.target.wants/kubelet.service " + dir + "kubelet.service",
		dir + "a.target.wants/containerd.service " + dir + "containerd.service",
		dir + "b.target.wants/containerd.service " + dir + "containerd.service",
		dir + "c.target.wants/undo-mount-hacks.service " + dir + "undo-mount-hacks.service",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if _, err := enable(units("[Install]", "", "")); err == nil || !strings.Contains(err.Error(), "kubelet.service") {
		t.Errorf("unit without WantedBy: got %v", err)
	}
	if _, err := enable(nil); err == nil || !strings.Contains(err.Error(), "/etc/systemd/system/kubelet.service") {
		t.Errorf("no unit: got %v", err)
	}
}

func TestReadSandboxImage(t *testing.T) {
	const cri = "[plugins.\"io.containerd.grpc.v1.cri\"]\n"
	tests := []struct{ name, config, image, err string }{
		{"kind's", "version = 2\n" + cri + "  sandbox_image = \"registry.k8s.io/pause:3.10\"\n", "registry.k8s.io/pause:3.10", ""},
		{"no sandbox image", cri, "", "no sandbox image"},
		{"a sandbox image that is no text", cri + "sandbox_image = 1", "", "configuration of containerd"},
		{"no TOML", "[", "", "configuration of containerd"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			image, err := readSandboxImage(tt.config)
			if image != tt.image || (err == nil) != (tt.err == "") || (err != nil && !strings.Contains(err.Error(), tt.err)) {
				t.Errorf("got %q, %v; want %q, %q", image, err, tt.image, tt.err)
			}
		})
	}
}

func TestContainerSpec(t *testing.T) {
	file, err := containerSpec(`{"process":{"args":["sh"],"rlimits":[{"type":"RLIMIT_NOFILE"}]}}`)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(file.Content); strings.Contains(got, "rlimits") || !strings.Contains(got, `"args"`) {
		t.Errorf("want args and no rlimits, got\n%s", got)
	}
	if _, err := containerSpec("ctr: failed"); err == nil || !strings.Contains(err.Error(), "ctr oci spec") {
		t.Errorf("not JSON: got %v", err)
	}
}

func TestStorageManifest(t *testing.T) {
	upstream, err := os.ReadFile("testdata/local-path-storage.yaml")
	if err != nil {
		t.Fatal(err)
	}
	got, err := storageManifest(upstream)
	if err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "default-storage.golden.yaml", got)
}

func TestStorageManifestRefusesWhatItDoesNotKnow(t *testing.T) {
	const deployment = "kind: Deployment\nspec: {template: {spec: {containers: %s}}}\n"
	tests := map[string]struct{ manifest, err string }{
		"two containers": {strings.Replace(deployment, "%s", "[{name: a}, {name: b}]", 1), "want one container, got 2"},
		"no container":   {strings.Replace(deployment, "%s", "[]", 1), "want one container, got 0"},
		"no YAML":        {"{", "reading local-path-provisioner's manifest"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := storageManifest([]byte(tt.manifest)); err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("got %v, want %q", err, tt.err)
			}
		})
	}
}
