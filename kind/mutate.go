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
	"github.com/gardener-extensions/registry-cache/kind/mutant"
)

// Plant makes Up build what ships with the planted bug of that name (kind/mutant), until a Testbed without one is brought up. The
// empty name is none. One of the testbed's own gets into no image, and is an error, as an unknown one is.
func (t *Testbed) Plant(name string) error {
	if name == "" {
		t.Planted = nil
		return nil
	}
	found, err := plantable(name)
	if err != nil {
		return err
	}
	t.Planted = &PlantedBug{found.Name, found.Overlay}
	return nil
}

// plantable returns the planted bug of that name, unless it is one of the testbed's own.
func plantable(name string) (mutant.Mutant, error) {
	found, err := mutant.Find(name)
	if err == nil && found.OfTestbed() {
		err = fmt.Errorf("planted bug %s is one of the testbed's own (%s), and none of what ships: only ProveScenarios builds with it",
			name, found.File)
	}
	return found, err
}

// planted returns the binaries as they are to be built: those that ship with the planted bug, if there is one. The caller holds the
// lock of the folder.
func (t *Testbed) planted(directory string, binaries []image.Binary) ([]image.Binary, error) {
	if t.Planted == nil {
		return binaries, nil
	}
	overlay, err := t.Planted.Overlay(t.root, filepath.Join(directory, "mutant"))
	if err != nil {
		return nil, err
	}
	with := slices.Clone(binaries)
	for i := range with {
		if slices.Contains(DevelopedImages(), with[i].Name) {
			with[i].Overlay = overlay
		}
	}
	return with, nil
}

// notePlanted writes down which bug Up is about to install. Without one nothing changes: what is there stays until all of it is
// replaced.
func (t *Testbed) notePlanted() error {
	if t.Planted == nil {
		return nil
	}
	return file.Replace(t.state.plantedBug(), []byte(t.Planted.Name+"\n"), 0o644)
}

// forgetPlanted says that no part of the testbed has a planted bug any more, unless one was just installed.
func (t *Testbed) forgetPlanted(context.Context) error {
	if t.Planted != nil {
		return nil
	}
	if err := os.Remove(t.state.plantedBug()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("forget the planted bug: %w", err)
	}
	return nil
}

// PlantedBug returns the name of the bug that the testbed was last brought up with, by any process; empty for none.
func (t *Testbed) PlantedBug() (string, error) {
	name, err := os.ReadFile(t.state.plantedBug())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read which bug is planted: %w", err)
	}
	return strings.TrimSpace(string(name)), nil
}
