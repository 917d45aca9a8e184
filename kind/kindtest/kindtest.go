// Package kindtest creates testbeds for tests that need no cluster. The testbeds use temporary
// folders and a script instead of the docker command. The package must not contain assertions.
package kindtest

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/gardener-extensions/registry-cache/kind"
)

// New returns a testbed that keeps its state and its locks in temporary folders, unless options set
// other folders.
func New(t *testing.T, options kind.Options) *kind.Testbed {
	t.Helper()
	for _, folder := range []*string{&options.Directory, &options.Locks} {
		if *folder == "" {
			*folder = t.TempDir()
		}
	}
	options.Out = io.Discard
	testbed, err := kind.New(options)
	if err != nil {
		t.Fatal(err)
	}
	return testbed
}

// Stored returns a testbed with a state folder, on a Docker Engine that does not answer.
func Stored(t *testing.T) *kind.Testbed {
	t.Helper()
	t.Setenv("DOCKER_HOST", "unix://"+filepath.Join(t.TempDir(), "docker.sock"))
	testbed := New(t, kind.Options{Prefix: "no-answer-to-a-test"})
	WriteFile(t, testbed.State.GardenletLog(), "")
	return testbed
}

// Docker puts a shell script named docker first on the PATH.
func Docker(t *testing.T, script string) {
	t.Helper()
	folder := t.TempDir()
	WriteFile(t, filepath.Join(folder, "docker"), "#!/bin/sh\n"+script)
	t.Setenv("PATH", folder+":"+os.Getenv("PATH"))
}

// WriteFile writes an executable file, and creates the folder for it.
func WriteFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
		t.Fatal(err)
	}
}
