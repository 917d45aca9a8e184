package image

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	osexec "os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

func buildPause(t *testing.T, bin Binary) Built {
	t.Helper()
	built, err := Build(t.Context(), t.TempDir(), bin)
	if err != nil {
		t.Fatal(err)
	}
	return built[0]
}

func TestBuildIsDeterministic(t *testing.T) {
	bin := Pause()
	bin.Entries = []Entry{{Path: "/tmp", Mode: fs.ModeDir | fs.ModeSticky | 0o777}}
	first := buildPause(t, bin)
	if second := buildPause(t, bin); first.Ref != second.Ref {
		t.Errorf("same Binary, two references: %s and %s", first.Ref, second.Ref)
	}
	digest, err := first.Image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	if want := "registry-cache.testbed/pause:" + digest.Hex[:12]; first.Ref != want {
		t.Errorf("reference %s, want %s", first.Ref, want)
	}
	if err := validate.Image(first.Image, validate.Fast); err != nil {
		t.Errorf("image is not valid: %v", err)
	}
	bin.Cmd = []string{"other"}
	if third := buildPause(t, bin); first.Ref == third.Ref {
		t.Errorf("other arguments, same reference %s", third.Ref)
	}
}

func TestBuildConfig(t *testing.T) {
	for _, tc := range []struct {
		name       string
		change     func(*Binary)
		entrypoint []string
		user       string
	}{
		{"defaults", func(*Binary) {}, []string{"/pause"}, "65532:65532"},
		{"set", func(b *Binary) { b.Path, b.User, b.Entrypoint = "/bin/p", "0:0", []string{"/bin/p", "x"} }, []string{"/bin/p", "x"}, "0:0"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bin := Pause()
			tc.change(&bin)
			file, err := buildPause(t, bin).Image.ConfigFile()
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(file.Config.Entrypoint, tc.entrypoint) || file.Config.User != tc.user {
				t.Errorf("entrypoint %v, user %q; want %v, %q", file.Config.Entrypoint, file.Config.User, tc.entrypoint, tc.user)
			}
			if file.OS != "linux" || file.Architecture == "" || !file.Created.Equal(time.Unix(0, 0)) {
				t.Errorf("platform %s/%s, created %v", file.OS, file.Architecture, file.Created)
			}
		})
	}
}

// TestBuiltProgram checks the files in the layers, and that the program ends on SIGTERM.
func TestBuiltProgram(t *testing.T) {
	bin := Pause()
	bin.Entries = []Entry{
		{Path: "/tmp", Mode: fs.ModeDir | fs.ModeSticky | 0o777},
		{Path: "/etc/x", Mode: 0o644, Owner: 65532, Content: []byte("x")},
	}
	root := unpack(t, buildPause(t, bin).Image)
	if got := root["tmp/"]; got.mode != 0o1777 || !got.dir {
		t.Errorf("/tmp: %+v, want a directory of mode 1777", got)
	}
	if got := root["etc/x"]; got.mode != 0o644 || string(got.content) != "x" || got.owner != 65532 {
		t.Errorf("/etc/x: %+v", got)
	}
	program := filepath.Join(t.TempDir(), "pause")
	if err := os.WriteFile(program, root["pause"].content, fs.FileMode(root["pause"].mode)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := osexec.CommandContext(ctx, program)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = time.Minute
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	cancel()
	_ = cmd.Wait()
	if code := cmd.ProcessState.String(); code != "exit status 0" && code != "signal: terminated" {
		t.Errorf("pause ended with %s", code)
	}
}

func TestWriteArchive(t *testing.T) {
	built := buildPause(t, Pause())
	var archive bytes.Buffer
	if err := WriteArchive(&archive, built); err != nil {
		t.Fatal(err)
	}
	tag, err := name.NewTag(built.Ref)
	if err != nil {
		t.Fatal(err)
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(archive.Bytes())), nil }
	img, err := tarball.Image(open, &tag)
	if err != nil {
		t.Fatal(err)
	}
	want, _ := built.Image.ConfigName()
	if got, _ := img.ConfigName(); got != want {
		t.Errorf("archive holds config %s, want %s", got, want)
	}
}

func TestRandomImagesShareNothing(t *testing.T) {
	pause := buildPause(t, Pause())
	seen := map[v1.Hash]bool{}
	for range 2 {
		img, err := Random(pause, 3, 1<<10)
		if err != nil {
			t.Fatal(err)
		}
		if err := validate.Image(img, validate.Fast); err != nil {
			t.Errorf("image is not valid: %v", err)
		}
		manifest, err := img.Manifest()
		if err != nil {
			t.Fatal(err)
		}
		if len(manifest.Layers) != 4 {
			t.Errorf("%d layers, want program and 3 random layers", len(manifest.Layers))
		}
		for _, blob := range append(manifest.Layers, manifest.Config) {
			if seen[blob.Digest] {
				t.Errorf("blob %s is in two images", blob.Digest)
			}
			seen[blob.Digest] = true
		}
		if root := unpack(t, img); root["pause"].mode != 0o755 || len(root["random-2"].content) != 1<<10 {
			t.Errorf("files of the image: %v", root)
		}
	}
}

func TestBuildErrors(t *testing.T) {
	for _, tc := range []struct {
		name string
		bins []Binary
		want string
	}{
		{"no name", []Binary{{Package: PausePackage}}, `image name ""`},
		{"bad name", []Binary{{Name: "A b", Package: PausePackage}}, `image name "A b"`},
		{"same file", []Binary{Pause(), {Name: "b", Package: "example.com/pause"}}, "built to the same file"},
		{"no such package", []Binary{{Name: "a", Package: PausePackage + "/none"}}, "go build"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := Build(t.Context(), t.TempDir(), tc.bins...)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want it to contain %q", err, tc.want)
			}
		})
	}
}

func TestPlanRunsOneBuildPerFlags(t *testing.T) {
	plan, err := plan("d", []Binary{
		{Name: "a", Package: "m/a", Ldflags: "-X m.v=1"}, {Name: "b", Package: "m/b", Ldflags: "-X m.v=1"},
		{Name: "c", Package: "m/c"}, {Name: "again", Package: "m/a", Ldflags: "-X m.v=1"}, {Name: "plain", Package: "m/a"},
		{Name: "other", Package: "n/a", Module: "/other/module"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(plan) != 3 || !slices.Equal(plan[0].pkgs, []string{"m/a", "m/b"}) || !slices.Equal(plan[1].pkgs, []string{"m/c", "m/a"}) {
		t.Errorf("plan %+v", plan)
	}
	if args := plan[2].args(); args[1] != "-C" || args[2] != "/other/module" || args[len(args)-1] != "n/a" {
		t.Errorf("arguments for another module %q", args)
	}
	for i, want := range []string{"-s -w -X m.v=1", "-s -w"} {
		if args := plan[i].args(); args[slices.Index(args, "-ldflags")+1] != want {
			t.Errorf("arguments %q, want the linker flags %q", args, want)
		}
	}
	if plan[0].dir == plan[1].dir || plan[1].dir == plan[2].dir {
		t.Errorf("two builds write to %s", plan[1].dir)
	}
}

func TestPlanForDebugger(t *testing.T) {
	plan, err := plan("d", []Binary{{Name: "a", Package: "m/a"}, {Name: "debugged", Package: "m/a", Debug: true}})
	if err != nil {
		t.Fatal(err)
	}
	if len(plan) != 2 || plan[0].dir == plan[1].dir {
		t.Fatalf("plan %+v, want two builds with a folder each", plan)
	}
	for i, want := range []struct{ ldflags, gcflags string }{{"-s -w", ""}, {"", debugFlags}} {
		args := plan[i].args()
		if got := args[slices.Index(args, "-ldflags")+1]; got != want.ldflags {
			t.Errorf("build %d: linker flags %q, want %q", i, got, want.ldflags)
		}
		got := ""
		if at := slices.Index(args, "-gcflags"); at >= 0 {
			got = args[at+1]
		}
		if got != want.gcflags {
			t.Errorf("build %d: compiler flags %q, want %q", i, got, want.gcflags)
		}
	}
	if !strings.HasPrefix(debugFlags, strings.TrimSuffix(PausePackage, "kind/image/pause")) {
		t.Errorf("%q does not apply to this module", debugFlags)
	}
}

type file struct {
	mode    int64
	owner   int
	dir     bool
	content []byte
}

func unpack(t *testing.T, img v1.Image) map[string]file {
	t.Helper()
	content := mutate.Extract(img)
	defer content.Close()
	files := map[string]file{}
	for reader := tar.NewReader(content); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		name := header.Name
		if header.Typeflag == tar.TypeDir {
			name = strings.TrimSuffix(name, "/") + "/"
		}
		files[name] = file{mode: header.Mode, owner: header.Uid, dir: header.Typeflag == tar.TypeDir, content: data}
	}
}

func TestMissingImages(t *testing.T) {
	one, two := Built{Ref: "registry-cache.testbed/one:1"}, Built{Ref: "registry-cache.testbed/two:1"}
	missing := missingImages([]Built{one, two}, []string{"registry-cache.testbed/one:1", "registry-cache.testbed/two:0"})
	if len(missing) != 1 || missing[0].Ref != two.Ref {
		t.Errorf("missing = %v, want only %s", missing, two.Ref)
	}
}
