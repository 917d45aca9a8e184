package cachetest

import (
	"io/fs"
	"testing"

	"github.com/gardener-extensions/registry-cache/examples"
	"github.com/gardener-extensions/registry-cache/kind/operate"
)

// TestExamplesAreManifests: users can apply the examples unchanged.
func TestExamplesAreManifests(t *testing.T) {
	entries, err := fs.ReadDir(examples.Files, examples.ShootsFolder)
	if err != nil || len(entries) < 5 {
		t.Fatalf("%d examples, error %v", len(entries), err)
	}
	for _, entry := range entries {
		t.Run(entry.Name(), func(t *testing.T) {
			file, err := examples.Files.Open(examples.ShootsFolder + "/" + entry.Name())
			if err != nil {
				t.Fatal(err)
			}
			read, err := operate.ReadManifest(entry.Name(), file)
			if err != nil {
				t.Fatal(err)
			}
			if len(read.Secrets) != len(read.Shoot.Spec.Resources) {
				t.Errorf("%d secrets for %d resources", len(read.Secrets), len(read.Shoot.Spec.Resources))
			}
		})
	}
}
