package fieldbugs

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestEndRotation checks that endRotation can end a rotation in each phase.
func TestEndRotation(t *testing.T) {
	for name, test := range map[string]struct {
		phases []string // one for each `shoot get`; later ones return the last phase
		verbs  []string
		err    string
	}{
		"it never began":            {phases: []string{""}},
		"it is over":                {phases: []string{"Completed"}},
		"the start was interrupted": {[]string{"Preparing", "Prepared", "Completed"}, []string{"shoot reconcile", "shoot rotate-ca-complete"}, ""},
		"it was only started":       {[]string{"Prepared", "Completed"}, []string{"shoot rotate-ca-complete"}, ""},
		"the end was interrupted":   {[]string{"Completing", "Completed"}, []string{"shoot reconcile"}, ""},
		"it does not end":           {[]string{"Completing"}, []string{"shoot reconcile", "shoot reconcile"}, "still in phase Completing"},
	} {
		t.Run(name, func(t *testing.T) {
			var verbs []string
			looks := 0
			r := rigOf(func(line string) string {
				if line != "shoot get --json" {
					verbs = append(verbs, line)
					return ""
				}
				looks++
				return fmt.Sprintf(`{"stage": "present", "rotation": %q}`, test.phases[min(looks, len(test.phases))-1])
			})
			err := r.endRotation(t.Context())
			if !slices.Equal(verbs, test.verbs) {
				t.Errorf("%q, want %q", verbs, test.verbs)
			}
			if (err != nil) != (test.err != "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("%v, want %q", err, test.err)
			}
		})
	}
}

// TestEndRotationFails checks that endRotation returns the errors of its commands.
func TestEndRotationFails(t *testing.T) {
	for _, refuse := range []string{"get", "reconcile"} {
		c := &console{refuse: refuse, shoot: `{"stage": "present", "rotation": "Completing"}`}
		r := &Rig{execute: c.execute, transcript: &strings.Builder{}, result: &Result{}}
		if err := r.endRotation(t.Context()); err == nil || !strings.Contains(err.Error(), "testbed shoot "+refuse) {
			t.Errorf("%v, want that shoot %s failed", err, refuse)
		}
	}
}

// TestEndRotationUnread checks that endRotation fails if the status could not be read. Such a
// status has no phase, like that of a Shoot without a rotation.
func TestEndRotationUnread(t *testing.T) {
	c := &console{shoot: `{"stage": "", "problems": ["seed: connection refused"]}`}
	r := &Rig{execute: c.execute, transcript: &strings.Builder{}, result: &Result{}}
	if err := r.endRotation(t.Context()); err == nil || !strings.Contains(err.Error(), "seed: connection refused") {
		t.Errorf("%v, want the problem of the status", err)
	}
	if len(c.lines) != 1 {
		t.Errorf("ran %q, want one command", c.lines)
	}
}
