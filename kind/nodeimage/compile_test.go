package nodeimage

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestJobs(t *testing.T) {
	const gib = 1 << 30
	tests := []struct {
		name   string
		cpus   int
		memory uint64
		want   int
	}{
		{"enough memory", 2, 24 * gib, 2},
		{"many CPUs, little memory", 16, 8 * gib, 4},
		{"less than one program takes", 4, gib, 1},
		{"memory not known", 4, 0, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := jobs(tt.cpus, tt.memory); got != tt.want {
				t.Errorf("got %d, want %d", got, tt.want)
			}
		})
	}
}

func TestBuildArguments(t *testing.T) {
	got := strings.Join(runcProgram().arguments("-s -w", "/out/", 2), " ")
	if want := "build -p 2 -o /out/ -ldflags -s -w -tags seccomp,netgo,osusergo github.com/opencontainers/runc"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestRun compiles a small module with a program that has another name in the image.
func TestRun(t *testing.T) {
	modules := t.TempDir()
	write(t, filepath.Join(modules, "small/go.mod"), "module small\n\ngo 1.26\n")
	write(t, filepath.Join(modules, "small/server/main.go"), "package main\n\nfunc main() {}\n")
	c := compilation{name: "small", module: "small", programs: []program{{pkg: "./server", name: "etcd"}}}
	target := filepath.Join(t.TempDir(), "programs")
	if err := c.run(t.Context(), modules, "-s -w", target); err != nil {
		t.Fatal(err)
	}
	if !isFile(filepath.Join(target, "etcd"))() || isFile(filepath.Join(target, "server"))() {
		t.Error("the program does not have the name of the image")
	}

	write(t, filepath.Join(modules, "small/server/main.go"), "package main\n\nfunc main() { undefined() }\n")
	err := c.run(t.Context(), modules, "-s -w", target)
	if err == nil || !strings.Contains(err.Error(), "undefined: undefined") {
		t.Errorf("the error does not say why: %v", err)
	}
}
