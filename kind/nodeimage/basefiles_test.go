package nodeimage

import (
	"context"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/gardener-extensions/registry-cache/internal/golden"
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
		if file.mode != want[file.path] {
			t.Errorf("%s has mode %o, want %o", file.path, file.mode, want[file.path])
		}
	}
	if len(files) != len(want) {
		t.Errorf("%d files, want %d", len(files), len(want))
	}
}

func TestEnable(t *testing.T) {
	units := func(installs ...string) []entry {
		var files []entry
		for i, unit := range enabledUnits {
			files = append(files, text("/etc/systemd/system/"+unit, installs[i]))
		}
		return files
	}
	links, err := enable(units("[Install]\nWantedBy=multi-user.target\n", "[Install]\nWantedBy=a.target b.target\n", "[Install]\nWantedBy=c.target"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, link := range links {
		got = append(got, link.path+" "+link.link)
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

// TestKindBase reads the files of the kind module that this repository requires. It fails early if
// a new version of kind moves or changes what the recipe needs.
func TestKindBase(t *testing.T) {
	src, err := locate(context.Background(), "")
	if err != nil {
		t.Fatal(err)
	}
	entries, sandbox, err := kindBase(src.kindDir)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(sandbox, "registry.k8s.io/pause:") {
		t.Errorf("sandbox image %q", sandbox)
	}
	if _, err := references(listed, sandbox); err != nil {
		t.Error(err)
	}
	byPath := map[string]entry{}
	for _, e := range withParents(entries) {
		byPath[e.path] = e
	}
	for _, path := range []string{"/usr/local/bin/entrypoint", "/kind/bin/mount-product-files.sh", "/etc/crictl.yaml", "/kind/version",
		"/etc/systemd/system/multi-user.target.wants/kubelet.service", "/etc/kubernetes/manifests", "/etc/containerd/certs.d"} {
		if _, ok := byPath[path]; !ok {
			t.Errorf("no %s", path)
		}
	}
	if config := byPath[containerdConfigFile].data; !strings.Contains(config, "/etc/containerd/certs.d") {
		t.Errorf("containerd's configuration without registryConfig:\n%s", config)
	}
}

func TestContainerdConfig(t *testing.T) {
	tests := []struct {
		name, base string
		fails      bool
	}{
		{"kind's", "version = 2\n[plugins.\"io.containerd.grpc.v1.cri\"]\n  sandbox_image = \"p\"\n", false},
		{"has registries already", registryConfig, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := containerdConfig(tt.base)
			if (err != nil) != tt.fails {
				t.Fatalf("error %v, want one: %t", err, tt.fails)
			}
			if !tt.fails && (!strings.HasPrefix(got, tt.base) || !strings.Contains(got, `config_path = "/etc/containerd/certs.d"`)) {
				t.Errorf("got %s", got)
			}
		})
	}
}

func TestBaseSpec(t *testing.T) {
	tests := []struct {
		name, spec string
		hooks      int
	}{
		{"no hooks", `{"process":{"args":["sh"],"rlimits":[{"type":"RLIMIT_NOFILE"}]}}`, 1},
		{"an existing hook", `{"process":{"rlimits":[]},"hooks":{"createContainer":[{"path":"/other"}]}}`, 2},
		{"no process", `{}`, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := baseSpec([]byte(tt.spec))
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(got, "rlimits") || strings.Count(got, `"path"`) != tt.hooks || !strings.Contains(got, "mount-product-files.sh") {
				t.Errorf("want no rlimits and %d hooks, got\n%s", tt.hooks, got)
			}
			if strings.Contains(tt.spec, "args") && !strings.Contains(got, `"args"`) {
				t.Errorf("existing content is lost:\n%s", got)
			}
		})
	}
	if _, err := baseSpec([]byte("ctr: failed")); err == nil || !strings.Contains(err.Error(), "ctr oci spec") {
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
