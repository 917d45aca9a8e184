package fieldbugs

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Lane says when a bug is reproduced.
type Lane string

// The lanes.
const (
	// Fast bugs belong to `make e2e`, too.
	Fast Lane = "fast"
	// Full bugs belong to `make e2e-all` only.
	Full Lane = "full"
)

// The Shoots that bugs begin with, below the root of the repository.
const (
	// TwoCaches has a cache for alpha and one for beta, none for gamma.
	TwoCaches = "kind/fieldbugs/shoots/two-caches.yaml"
	// OneCache has the cache for beta only.
	OneCache = "kind/fieldbugs/shoots/one-cache.yaml"
)

// DefaultBound is how long a bug may take unless it says otherwise.
const DefaultBound = 4 * time.Minute

// A Bug is a report from the field, as something that can be reproduced.
type Bug struct {
	// ID is that of the scenario in the catalog, s1 to s25. Title is one line.
	ID, Title string
	// Reports are the threads that it was seen in, as <project>#<number>.
	Reports []string
	// Symptom is what the reporters saw, Fault what makes it here, Expectation what a user of this cache must see.
	Symptom, Fault, Expectation string
	Lane                        Lane
	// Shoot is the manifest of the Shoot that it begins with; TwoCaches if it is empty.
	Shoot string
	// Bound is how long it may take; DefaultBound if it is 0.
	Bound time.Duration
	// Known marks a bug whose expectation is not reached yet.
	Known *Known
	// Reproduce brings it about and returns an *Unmet for the first claim that does not hold. Faults that it leaves are cleared.
	Reproduce func(ctx context.Context, r *Rig) error
}

// Known says by which claim a bug fails, and why that is not mended.
type Known struct {
	Claim, Because string
}

func (b Bug) shoot() string {
	if b.Shoot == "" {
		return TwoCaches
	}
	return b.Shoot
}

func (b Bug) bound() time.Duration {
	if b.Bound == 0 {
		return DefaultBound
	}
	return b.Bound
}

// All returns the catalog, in the order of the IDs' numbers.
func All() []Bug {
	return []Bug{
		warmHit(), refused(), blackHole(), hang(), damaged(), outage(), outageRestart(), drain(), removeOne(), diskFull(),
		sharedLayer(), freesDisk(), crashState(), thunderingHerd(), rateLimit(), credentials(), tlsFlip(), authorityRotated(), authorityLost(),
		join(), stuckCache(), serviceRecreated(), names(), sleepWithoutDisk(), transfer(),
	}
}

// Find returns the bug with the ID; the error lists all.
func Find(id string) (Bug, error) {
	var ids []string
	for _, bug := range All() {
		if strings.EqualFold(bug.ID, id) {
			return bug, nil
		}
		ids = append(ids, bug.ID)
	}
	return Bug{}, fmt.Errorf("there is no field bug %q; there are %s", id, strings.Join(ids, ", "))
}

// InLane returns those that a run of the lane reproduces: a full one has all.
func InLane(lane Lane) []Bug {
	return slices.DeleteFunc(All(), func(b Bug) bool { return lane == Fast && b.Lane != Fast })
}
