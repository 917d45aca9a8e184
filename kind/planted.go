package kind

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gardener-extensions/registry-cache/kind/file"
	"github.com/gardener-extensions/registry-cache/kind/image"
)

// planted returns the binaries as they are to be built: those that ship with the planted bug, if there is one. The caller holds the
// lock of the folder.
func (t *Testbed) planted(directory string, binaries []image.Binary) ([]image.Binary, error) {
	if t.Planted == nil {
		return binaries, nil
	}
	overlay, err := t.Planted.Overlay(t.Root, filepath.Join(directory, "mutant"))
	if err != nil {
		return nil, err
	}
	with := slices.Clone(binaries)
	for i := range with {
		if slices.Contains(ShippedImages(), with[i].Name) {
			with[i].Overlay = overlay
		}
	}
	return with, nil
}

// notePlanted writes down which bug Up is about to install. Without one nothing changes: what is there stays until all of it is
// replaced.
func (t *Testbed) NotePlanted() error {
	if t.Planted == nil {
		return nil
	}
	return file.Replace(t.State.plantedBug(), []byte(t.Planted.Name+"\n"), 0o644)
}

// forgetPlanted says that no part of the testbed has a planted bug any more, unless one was just installed.
func (t *Testbed) ForgetPlanted(context.Context) error {
	if t.Planted != nil {
		return nil
	}
	if err := os.Remove(t.State.plantedBug()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("forget the planted bug: %w", err)
	}
	return nil
}

// PlantedBug returns the name of the bug that the testbed was last brought up with, by any process; empty for none.
func (t *Testbed) PlantedBug() (string, error) {
	name, err := os.ReadFile(t.State.plantedBug())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read which bug is planted: %w", err)
	}
	return strings.TrimSpace(string(name)), nil
}

// PlantedBug is a bug that Build builds into what ships, see package proof.
type PlantedBug struct {
	Name string
	// Overlay writes the changed sources below folder, and returns the file for go build -overlay.
	Overlay func(root, folder string) (string, error)
}
