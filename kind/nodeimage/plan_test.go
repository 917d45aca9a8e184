package nodeimage

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

// realInputs returns this repository's inputs with a fixed toolchain and kind.
func realInputs(t *testing.T) inputs {
	t.Helper()
	in, err := newInputs(os.DirFS("modules"), "go1 linux/amd64", "v0")
	if err != nil {
		t.Fatal(err)
	}
	return in
}

func mustPlan(t *testing.T, in inputs) plan {
	t.Helper()
	p, err := newPlan(in, folders{"kubernetes", "containerd"})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestPlanRebuildsWhatChanged: a changed input always changes the image, but only those parts that
// are built from the input.
func TestPlanRebuildsWhatChanged(t *testing.T) {
	tests := []struct {
		name, input string
		parts       []string // prefixes of the parts that must be built again
	}{
		{"kubernetes' go.mod", "modules/kubernetes/go.mod", []string{"programs-etcd-", "programs-control-plane-", "programs-kubernetes-", "programs-node-tools-", "programs-pause-"}},
		{"kubernetes' go.sum", "modules/kubernetes/go.sum", []string{"programs-etcd-", "programs-control-plane-", "programs-kubernetes-", "programs-node-tools-"}},
		{"coredns", "modules/kubernetes/coredns/main.go", []string{"programs-etcd-", "programs-control-plane-", "programs-kubernetes-", "programs-node-tools-"}},
		{"imagestore", "modules/containerd/imagestore/main.go", []string{"programs-containerd-", "programs-cni-", "programs-runc-"}},
		{"local-path-provisioner's go.mod", "modules/localpath/go.mod", []string{"programs-local-path-provisioner-"}},
		{"kind", inputKind, nil},
		{"the recipe", "recipe/image.go", nil},
		{"a package of the recipe", "recipe/filetree/filetree.go", nil},
		{"the toolchain", inputToolchain, []string{"programs-", "debian-"}},
	}
	before := mustPlan(t, realInputs(t))
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in := maps.Clone(realInputs(t))
			in[tt.input] += "\n// changed\n"
			after := mustPlan(t, in)
			if after.ref == before.ref {
				t.Error("the image kept its reference")
			}
			for i, entry := range after.entries() {
				rebuilt := entry != before.entries()[i]
				wanted := slices.ContainsFunc(tt.parts, func(p string) bool { return strings.HasPrefix(entry, p) })
				if rebuilt != wanted {
					t.Errorf("part %s: built again %t, want %t", entry, rebuilt, wanted)
				}
			}
		})
	}
}

// TestPlanForVersions: images differ in the chosen version only, and do not depend on the others.
func TestPlanForVersions(t *testing.T) {
	in := realInputs(t)
	old, err := newPlan(in, folders{"kubernetes", "containerd-2.0"})
	if err != nil {
		t.Fatal(err)
	}
	current := mustPlan(t, in)
	if old.ref == current.ref || old.version != current.version {
		t.Errorf("references %s and %s, Kubernetes %s and %s", old.ref, current.ref, old.version, current.version)
	}
	for i, c := range old.compilations {
		if same := c.entry == current.compilations[i].entry; same == (c.name == "containerd") {
			t.Errorf("compilation %s is shared: %t", c.name, same)
		}
	}
	in["modules/containerd-2.0/go.sum"] += "// changed"
	if mustPlan(t, in).ref != current.ref {
		t.Error("the image depends on a version that it does not contain")
	}
}

func TestPlanNamesTheImage(t *testing.T) {
	p := mustPlan(t, realInputs(t))
	name, tag, _ := strings.Cut(p.ref, ":")
	if name != "registry-cache-testbed/node" || len(tag) != 16 {
		t.Errorf("reference %s, want registry-cache-testbed/node:<16 hex digits>", p.ref)
	}
	if again := mustPlan(t, realInputs(t)); again.ref != p.ref {
		t.Errorf("unchanged inputs: reference %s, then %s", p.ref, again.ref)
	}
}

func TestPlanLocatesEveryPart(t *testing.T) {
	p := mustPlan(t, realInputs(t))
	var used []string
	built, err := p.artifacts(func(entry string) (string, error) {
		used = append(used, entry)
		return "/cache/" + entry, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(used) != len(p.entries()) {
		t.Errorf("used %d parts of %d: the others would be removed as unused", len(used), len(p.entries()))
	}
	for _, c := range components {
		for _, program := range c.programs {
			if !strings.HasPrefix(built.programs[program], "/cache/programs-") {
				t.Errorf("image %s: no program %s is built (%q)", c.name, program, built.programs[program])
			}
		}
		if c.tree != nil && built.trees[c.tree.name] == "" {
			t.Errorf("image %s: no file tree %s is built", c.name, c.tree.name)
		}
	}
	for _, program := range []string{"imagestore", "ctr", "kubeadm"} { // called by the build itself
		if built.programs[program] == "" {
			t.Errorf("program %s is not built", program)
		}
	}
}

func TestHashDependsOnEveryInput(t *testing.T) {
	base := inputs{"a": "1", "b": "2"}
	tests := map[string]inputs{
		"another value":             {"a": "1", "b": "3"},
		"another name":              {"a": "1", "c": "2"},
		"an input more":             {"a": "1", "b": "2", "c": ""},
		"an input less":             {"a": "1"},
		"values swapped":            {"a": "2", "b": "1"},
		"a value that looks like b": {"a": "1\nb 2"},
	}
	for name, other := range tests {
		t.Run(name, func(t *testing.T) {
			if other.hash() == base.hash() {
				t.Errorf("%v and %v have the same hash", other, base)
			}
		})
	}
	if again := (inputs{"b": "2", "a": "1"}); again.hash() != base.hash() {
		t.Error("equal inputs have different hashes")
	}
}

func TestNewInputsReadsSourcesOfModules(t *testing.T) {
	modules := fstest.MapFS{
		"kubernetes/go.mod":          {Data: []byte("module m")},
		"kubernetes/go.sum":          {Data: []byte("sum")},
		"kubernetes/coredns/main.go": {Data: []byte("package main")},
		"kubernetes/README":          {Data: []byte("prose")},
	}
	in, err := newInputs(modules, "go1", "v1")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"modules/kubernetes/go.mod", "modules/kubernetes/go.sum", "modules/kubernetes/coredns/main.go",
		"recipe/inputs.go", "recipe/filetree/filetree.go", "recipe/storage.go", "recipe/rootfs.sh", inputToolchain, inputKind} {
		if in[name] == "" {
			t.Errorf("input %s is missing", name)
		}
	}
	for _, name := range []string{"modules/kubernetes/README", "recipe/plan_test.go", "recipe/filetree/filetree_test.go"} {
		if _, ok := in[name]; ok {
			t.Errorf("%s is an input, but the image does not depend on it", name)
		}
	}
}

func open(t *testing.T, dir string) *cache {
	t.Helper()
	c, err := openCache(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.close)
	return c
}

func write(t *testing.T, name, data string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(data), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestProduce(t *testing.T) {
	failure := errors.New("disk full")
	tests := []struct {
		name  string
		build func(t *testing.T, path string) error
		err   error
		has   bool
	}{
		{"a file", func(t *testing.T, path string) error { write(t, path, "x"); return nil }, nil, true},
		{"a folder", func(t *testing.T, path string) error { write(t, filepath.Join(path, "a/b"), "x"); return nil }, nil, true},
		{"fails halfway", func(t *testing.T, path string) error { write(t, path, "x"); return failure }, failure, false},
		{"makes nothing", func(*testing.T, string) error { return nil }, os.ErrNotExist, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := open(t, t.TempDir())
			err := c.produce("part", func(path string) error {
				if path == c.path("part") {
					t.Error("is built in place: an interrupted build would look complete")
				}
				return tt.build(t, path)
			})
			if !errors.Is(err, tt.err) || c.has("part") != tt.has {
				t.Errorf("error %v, there %t; want %v, %t", err, c.has("part"), tt.err, tt.has)
			}
		})
	}
}

func TestOpenCacheRemovesWhatAKilledBuildLeft(t *testing.T) {
	dir := t.TempDir()
	left, finished := filepath.Join(dir, tempDir, "part/half"), filepath.Join(dir, "whole")
	write(t, left, "x")
	write(t, finished, "x")
	c := open(t, dir)
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is still there: %v", left, err)
	}
	if !c.has("whole") {
		t.Error("a finished part is gone")
	}
}

func TestOpenCacheWaitsForAnotherBuild(t *testing.T) {
	dir := t.TempDir()
	first := open(t, dir)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := openCache(ctx, dir); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("a second build did not wait for the first: %v", err)
	}
	first.close()
	if second, err := openCache(t.Context(), dir); err != nil {
		t.Errorf("after the first build's end: %v", err)
	} else {
		second.close()
	}
}

func TestPruneRemovesUnusedParts(t *testing.T) {
	c := open(t, t.TempDir())
	write(t, c.path("used"), "x")
	write(t, c.path("unused/program"), "x")
	old := time.Now().Add(-30 * 24 * time.Hour)
	for _, entry := range []string{"used", "unused", lockFile} {
		if err := os.Chtimes(c.path(entry), old, old); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.use("used"); err != nil {
		t.Fatal(err)
	}
	if err := c.prune(time.Now().Add(-keepUnused)); err != nil {
		t.Fatal(err)
	}
	if !c.has("used") || c.has("unused") || !c.has(lockFile) || !c.has(tempDir) {
		t.Errorf("used %t, unused %t, lock %t, temp %t", c.has("used"), c.has("unused"), c.has(lockFile), c.has(tempDir))
	}
}

func TestParseLocation(t *testing.T) {
	tests := []struct {
		name, lines string
		want        source
		err         string
	}{
		{"both", ownModule + "\t\t/src\n" + kindModule + "\tv0.33.0\t/mod/kind\n",
			source{modules: "/src/kind/nodeimage/modules", kindDir: "/mod/kind", kindVersion: "v0.33.0"}, ""},
		{"kind not downloaded", ownModule + "\t\t/src\n" + kindModule + "\tv0.33.0\t\n", source{}, kindModule + " is not on this machine: run `go mod download`"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := parseLocation(tt.lines)
			if got != tt.want || (err == nil) != (tt.err == "") || (err != nil && !strings.Contains(err.Error(), tt.err)) {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

func TestLocateOutsideTheRepository(t *testing.T) {
	if _, err := locate(t.Context(), t.TempDir()); err == nil || !strings.Contains(err.Error(), "run this inside the repository") {
		t.Errorf("got %v", err)
	}
}

func TestParseDownload(t *testing.T) {
	if dir, err := parseDownload(`{"Path": "k8s.io/kubernetes", "Dir": "/mod/kubernetes"}`); dir != "/mod/kubernetes" || err != nil {
		t.Errorf("got %q, %v", dir, err)
	}
	if _, err := parseDownload("go: not found"); err == nil {
		t.Error("invalid JSON gives no error")
	}
}
