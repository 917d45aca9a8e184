package spec

import (
	"slices"
)

// Select returns those of the active faults that have the IDs; all without any. An ID that none has is a *UseError.
func Select(active []Fault, ids []string) ([]Fault, error) {
	if len(ids) == 0 {
		return active, nil
	}
	var known []string
	var chosen []Fault
	for _, f := range active {
		known = append(known, f.ID)
		if slices.Contains(ids, f.ID) {
			chosen = append(chosen, f)
		}
	}
	for _, id := range ids {
		switch {
		case len(known) == 0:
			return nil, misuse("fault %s is not active; none is", id)
		case !slices.Contains(known, id):
			return nil, misuse("fault %s is not active; active are %s", id, list(known))
		}
	}
	return chosen, nil
}
