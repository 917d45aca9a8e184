package fieldbugs

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// Lane says which make targets reproduce a bug.
type Lane string

const (
	// Fast bugs run in `make e2e` and `make e2e-all`.
	Fast Lane = "fast"
	// Full bugs run only in `make e2e-all`. It is the default of Bug.Lane.
	Full Lane = "full"
)

// Paths of Shoot manifests, relative to the root of the repository. Bugs start with these Shoots.
const (
	// TwoCaches configures caches for alpha and beta, but not for gamma.
	TwoCaches = "kind/fieldbugs/shoots/two-caches.yaml"
	// OneCache configures a cache for beta only.
	OneCache = "kind/fieldbugs/shoots/one-cache.yaml"
	// Stuck has a cache whose volume is never bound.
	Stuck = "kind/fieldbugs/shoots/stuck.yaml"
	// ShortTTL has a cache for alpha with a TTL of 30 s.
	ShortTTL = "kind/fieldbugs/shoots/short-ttl.yaml"
	// OneMinuteTTL has a cache for alpha with a TTL of a minute.
	OneMinuteTTL = "kind/fieldbugs/shoots/one-minute-ttl.yaml"
	// HTTPS has caches with http.tls.
	HTTPS = "kind/fieldbugs/shoots/https.yaml"
	// Names has difficult names of upstreams.
	Names = "kind/fieldbugs/shoots/names.yaml"
)

// DefaultBound is the Bound of a bug that sets none.
const DefaultBound = 4 * time.Minute

// A Bug describes a bug that users reported, and the steps that reproduce it.
type Bug struct {
	// ID ("s22") is also the name of the scenario in e2e. Slug ("service-recreated") is easier to
	// remember. Title is one line.
	ID, Slug, Title string
	// Reports are issues that describe the bug, as <project>#<number>.
	Reports []string
	// Symptom is what the reporters saw. Fault causes this symptom in the testbed. Expectation is what
	// must happen instead.
	Symptom, Fault, Expectation string
	Lane                        Lane
	// Shoot is the manifest of the Shoot that the bug starts with. The default is TwoCaches.
	Shoot string
	// Bound limits one run, from applying the Shoot to the end of Reproduce. 0 means DefaultBound.
	Bound time.Duration
	// Known marks a bug whose expectation does not hold yet.
	Known *Known
	// Reproduce runs the steps. It returns an *Unmet for the first claim that does not hold. The
	// caller deletes the faults.
	Reproduce func(ctx context.Context, r *Rig) error
}

// Known is a claim that does not hold yet, and the reason.
type Known struct {
	Claim, Because string
}

func (b Bug) shoot() string { return cmp.Or(b.Shoot, TwoCaches) }

func (b Bug) bound() time.Duration { return cmp.Or(b.Bound, DefaultBound) }

// All returns all bugs in the order of their IDs.
func All() []Bug {
	return []Bug{
		warmHit(), cacheRefuses(), blackHole(), cacheHangs(), damagedBlobs(), upstreamOutage(), outageRestart(), extensionDisabled(), removeOne(), diskFull(),
		sharedLayer(), freesDisk(), crashState(), thunderingHerd(), rateLimit(), credentials(), tlsFlip(), caRotated(), caDamaged(),
		nodeJoins(), stuckCache(), serviceRecreated(), upstreamNames(), hibernatedDiskLost(), transfer(),
		downloadBreaks(), frozenClients(), wakeUpStorm(), recycledAddress(),
	}
}

// Find returns the bug with the ID ("s22") or slug ("service-recreated").
func Find(name string) (Bug, error) {
	bugs := All()
	i := slices.IndexFunc(bugs, func(b Bug) bool {
		return strings.EqualFold(b.ID, name) || strings.EqualFold(b.Slug, name)
	})
	if i < 0 {
		return Bug{}, fmt.Errorf("no field bug %q: `testbed reproduce --list` prints all field bugs", name)
	}
	return bugs[i], nil
}

// WriteList prints a table of all bugs: ID, slug and title.
func WriteList(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "ID\tNAME\tTITLE")
	for _, bug := range All() {
		fmt.Fprintf(table, "%s\t%s\t%s\n", bug.ID, bug.Slug, bug.Title)
	}
	return table.Flush()
}

// InLane returns the bugs that a lane runs. Full includes the fast bugs.
func InLane(lane Lane) []Bug {
	return slices.DeleteFunc(All(), func(b Bug) bool { return lane == Fast && b.Lane != Fast })
}
