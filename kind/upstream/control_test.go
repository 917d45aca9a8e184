package upstream

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/kind/upstream/server"
)

// fakeDocker puts a program named docker first on the PATH. It stores its arguments and its input
// in the folder, and then runs the script.
func fakeDocker(t *testing.T, script string) (folder string) {
	t.Helper()
	folder = t.TempDir()
	program := "#!/bin/sh\necho \"$@\" >" + folder + "/arguments\ncat >" + folder + "/input\n" + script
	if err := os.WriteFile(filepath.Join(folder, "docker"), []byte(program), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", folder+":"+os.Getenv("PATH"))
	return folder
}

// TestSetECR: the program in the container reads the values from its input, not from its arguments,
// which other users can see.
func TestSetECR(t *testing.T) {
	folder := fakeDocker(t, "")
	registry := &Registry{instance: instance{name: "mine-upstream-alpha", host: "alpha.test"}}
	if err := registry.SetECR(t.Context(), server.ECR{SecretAccessKey: "hunter2"}); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		"arguments": "exec --interactive mine-upstream-alpha /upstream-registry replace-ecr\n",
		"input":     `{"AccessKeyID":"","SecretAccessKey":"hunter2","Life":0}`,
	} {
		if got, err := os.ReadFile(filepath.Join(folder, file)); err != nil || string(got) != want {
			t.Errorf("%s: %q, error %v, want %q", file, got, err, want)
		}
	}
}

func TestSetFaultsFails(t *testing.T) {
	fakeDocker(t, "echo it is broken >&2\nexit 1\n")
	registry := &Registry{instance: instance{name: "mine-upstream-alpha", host: "alpha.test"}}
	err := registry.SetFaults(t.Context())
	if err == nil || !strings.Contains(err.Error(), "faults of upstream alpha.test: ") || !strings.Contains(err.Error(), "it is broken") {
		t.Errorf("error %v", err)
	}
}
