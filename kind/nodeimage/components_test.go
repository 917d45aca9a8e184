package nodeimage

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/gardener-extensions/registry-cache/kind/nodeimage/filetree"
)

// listed is the output of kubeadm v1.36.4.
const listed = `registry.k8s.io/kube-apiserver:v1.36.4
registry.k8s.io/kube-controller-manager:v1.36.4
registry.k8s.io/kube-scheduler:v1.36.4
registry.k8s.io/kube-proxy:v1.36.4
registry.k8s.io/coredns/coredns:v1.14.2
registry.k8s.io/pause:3.10.2
registry.k8s.io/etcd:3.6.8-0
`

func TestReferences(t *testing.T) {
	tests := []struct {
		name, listed string
		err          string
	}{
		{"as kubeadm lists", listed, ""},
		{"one missing", strings.Replace(listed, "registry.k8s.io/etcd:3.6.8-0", "", 1), "kubeadm does not list an image etcd"},
		{"one more", listed + "registry.k8s.io/kine:v1\n", "an image that is not built"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			refs, err := references(tt.listed, "registry.k8s.io/pause:3.10")
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("got %v, want %q", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for name, want := range map[string]string{
				"coredns":                "registry.k8s.io/coredns/coredns:v1.14.2",
				"etcd":                   "registry.k8s.io/etcd:3.6.8-0",
				"pause":                  "registry.k8s.io/pause:3.10", // containerd's version, not kubeadm's
				"busybox":                helperImage,
				"local-path-provisioner": localPathImage,
			} {
				if refs[name] != want {
					t.Errorf("%s is %q, want %q", name, refs[name], want)
				}
			}
		})
	}
}

// TestFilesOfKind fails early if a new version of kind's module moves or changes what the recipe
// needs.
func TestFilesOfKind(t *testing.T) {
	src, err := locate(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	entries, sandbox, err := kindFiles(src.kindDir, "v1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(sandbox, "registry.k8s.io/pause:") {
		t.Errorf("sandbox image %q", sandbox)
	}
	if _, err := references(listed, sandbox); err != nil {
		t.Error(err)
	}
	byPath := map[string]filetree.Entry{}
	for _, e := range entries {
		byPath[e.Path] = e
	}
	for _, path := range []string{"/usr/local/bin/entrypoint", "/kind/bin/mount-product-files.sh", "/etc/crictl.yaml", "/kind/version",
		"/etc/systemd/system/multi-user.target.wants/kubelet.service", "/etc/kubernetes/manifests", "/etc/containerd/certs.d"} {
		if _, ok := byPath[path]; !ok {
			t.Errorf("no %s", path)
		}
	}
}

// fakeArtifacts returns a fake program, kube-proxy, and a fake Debian tree.
func fakeArtifacts(t *testing.T) artifacts {
	t.Helper()
	dir := t.TempDir()
	program, tree := filepath.Join(dir, "program"), filepath.Join(dir, "tree.tar")
	write(t, program, "binary")
	if err := filetree.WriteFile(tree, []filetree.Entry{filetree.Text("/usr/sbin/nft", "tool")}); err != nil {
		t.Fatal(err)
	}
	return artifacts{programs: map[string]string{"kube-proxy": program}, trees: map[string]string{"tools": tree}}
}

func TestComponentImage(t *testing.T) {
	built := fakeArtifacts(t)
	tree := debianTree{name: "tools"}
	tests := []struct {
		name       string
		component  component
		entrypoint string
		files      []string
	}{
		{"program alone", component{name: "a", programs: []string{"kube-proxy"}}, "/usr/local/bin/kube-proxy",
			[]string{"0 755 0:0 usr/local/bin/kube-proxy binary", "5 1777 0:0 tmp"}},
		{"program on a tree", component{name: "b", programs: []string{"kube-proxy"}, tree: &tree, extra: []filetree.Entry{filetree.Symlink("/usr/sbin/iptables", "x")}},
			"/usr/local/bin/kube-proxy", []string{"0 644 0:0 usr/sbin/nft tool", "2 777 0:0 usr/sbin/iptables x", "0 755 0:0 usr/local/bin/kube-proxy binary"}},
		{"tree alone", component{name: "c", tree: &tree}, "/bin/sh", []string{"0 644 0:0 usr/sbin/nft tool"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			image, err := tt.component.image(built, t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			config, err := image.ConfigFile()
			if err != nil {
				t.Fatal(err)
			}
			// Without an entry point an image cannot run: containerd reports "invalid empty entrypoint and
			// cmd".
			if got := config.Config.Entrypoint; !slices.Equal(got, []string{tt.entrypoint}) {
				t.Errorf("entry point %v, want %s", got, tt.entrypoint)
			}
			files := listing(t, mutate.Extract(image))
			for _, want := range tt.files {
				if !slices.Contains(files, want) {
					t.Errorf("no %q in\n%s", want, strings.Join(files, "\n"))
				}
			}
		})
	}
}

func TestComponentImageNeedsItsPrograms(t *testing.T) {
	_, err := component{name: "etcd", programs: []string{"etcd"}}.image(fakeArtifacts(t), t.TempDir())
	if err == nil || err.Error() != "image etcd: program etcd was not built" {
		t.Errorf("got %v", err)
	}
}

func TestNodeImage(t *testing.T) {
	dir := t.TempDir()
	lower, upper := filepath.Join(dir, "lower.tar"), filepath.Join(dir, "upper.tar")
	for name, data := range map[string]string{lower: "old", upper: "new"} {
		if err := filetree.WriteFile(name, []filetree.Entry{filetree.Text("/etc/file", data)}); err != nil {
			t.Fatal(err)
		}
	}
	image, err := nodeImage(lower, upper)
	if err != nil {
		t.Fatal(err)
	}
	if got := listing(t, mutate.Extract(image)); !slices.Contains(got, "0 644 0:0 etc/file new") {
		t.Errorf("the upper layer does not win: %v", got)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.Config.StopSignal != "SIGRTMIN+3" || !slices.Contains(config.Config.Env, "container=docker") {
		t.Errorf("systemd will not stop or start: %+v", config.Config)
	}
	checkPlain(t, image)
}

// checkPlain checks that no layer is compressed: each digest equals the digest of the content.
func checkPlain(t *testing.T, image v1.Image) {
	t.Helper()
	layers, err := image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	for _, layer := range layers {
		digest, _ := layer.Digest()
		diffID, _ := layer.DiffID()
		mediaType, _ := layer.MediaType()
		if digest != diffID || mediaType != types.DockerUncompressedLayer {
			t.Errorf("layer %s, content %s, type %s", digest, diffID, mediaType)
		}
	}
}

// listing returns one line for each file of a tar archive.
func listing(t *testing.T, r io.Reader) []string {
	t.Helper()
	var lines []string
	for tr := tar.NewReader(r); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return lines
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%c %o %d:%d %s %s%s", h.Typeflag, h.Mode, h.Uid, h.Gid, h.Name, h.Linkname, data)))
	}
}
