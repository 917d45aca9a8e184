package proof

import (
	"fmt"

	"github.com/gardener-extensions/registry-cache/kind"
)

// Plant makes Up build what ships with the planted bug of that name (kind/mutant), until a Testbed without one is brought up. The
// empty name is none. One of the testbed's own gets into no image, and is an error, as an unknown one is.
func Plant(t *kind.Testbed, name string) error {
	if name == "" {
		t.Planted = nil
		return nil
	}
	found, err := plantable(name)
	if err != nil {
		return err
	}
	t.Planted = &kind.PlantedBug{Name: found.Name, Overlay: found.Overlay}
	return nil
}

// plantable returns the planted bug of that name, unless it is one of the testbed's own.
func plantable(name string) (Mutant, error) {
	found, err := Find(name)
	if err == nil && found.OfTestbed() {
		err = fmt.Errorf("planted bug %s is one of the testbed's own (%s), and none of what ships: only ProveScenarios builds with it",
			name, found.File)
	}
	return found, err
}
