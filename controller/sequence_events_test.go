package controller

import (
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// seqEvent is something that happens to a Shoot.
//
// The following is impossible in Gardener v1.150.0, so it is never generated:
//   - a change of the Shoot's spec, or its deletion, between the start of a migration and the end
//     of Restore (plugin/pkg/shoot/validator/admission.go, isShootInMigrationOrRestorePhase and
//     wasShootRescheduledToNewSeed);
//   - a reconciliation of a Shoot that is being deleted, and the end of a deletion
//     (pkg/gardenlet/controller/shoot/shoot/reconciler.go);
//   - a providerStatus in a new seed: gardenlet restores status.state and its resources
//     (pkg/extensions/customresources.go, RestoreExtensionObjectState);
//   - a migration while gardener-resource-manager does not run: gardenlet wakes up a hibernated
//     control plane first (…/shoot/reconciler_migrate.go, wakeupRequired);
//   - nodes in a hibernated Shoot, and old nodes in one that wakes up
//     (…/shoot/reconciler_reconcile.go, Worker before the hibernation of the control plane);
//   - two caches of one upstream, or none at all, except as a mistake that was admitted.
type seqEvent struct {
	// Do is one of
	//   add, remove, replace (with StorageClass To), grow, rename (with suffix To), replicate (or no
	//     longer): of the cache of On, by the owner of the Shoot;
	//   err (mistake To), correct, hibernate, wake, disable, enable: also by the owner;
	//   roll (gardenlet reconciles the Shoot), short (but ends after one attempt of the Actuator, for
	//     another reason), late (but ends after the Extension is ready), migrate;
	//   break (the write At of the next operation: its response is lost, the process ends before it,
	//     or it fails), restart: faults;
	//   guard (a policy forbids to delete claims), unguard, block (the cleaner cannot run), unblock,
	//     lag (of gardener-resource-manager, At seconds), quick, wait (five minutes), collect (the
	//     garbage collector runs, 12 hours later), join (a node), foreign (a Service of the owner with
	//     the name registry-To): of the environment;
	//   delete, force: the last event.
	Do, On, To string
	At         int
}

const gamma = "gamma.upstream.test"

// The kinds of events of random sequences: changes by the owner, events around the Shoot, and
// deviations of gardenlet's operation. A kind that is listed twice is more frequent.
var (
	seqChanges  = []string{"add", "add", "add", "replace", "grow", "rename", "replicate", "hibernate", "hibernate", "disable", "err"}
	seqAround   = []string{"foreign", "guard", "block", "lag", "wait", "collect", "join", "restart"}
	seqTroubles = []string{"short", "late", "migrate", "break", "break"}
)

// seqValues maps kinds of events to their values of To.
var seqValues = map[string][]string{
	"add": {"", "", "other"}, "replace": {"", "other"}, "rename": {"", "one", "two"}, "err": slices.Sorted(maps.Keys(seqMistakes)),
	"foreign": {"one"}, "break": {"lost", "crash", "fails"},
}

// seqOpposites maps events to those that revert them.
var seqOpposites = map[string]string{
	"add": "remove", "hibernate": "wake", "disable": "enable", "err": "correct", "guard": "unguard", "block": "unblock", "lag": "quick",
}

// seqRandom returns the sequence of a seed. Each step consists of an event around the Shoot, a
// change, and an operation. There are very few kinds of each, so that they interact: a repeated
// change reverts one that may still be pending. In most sequences gardener-resource-manager is
// slow, and minutes pass before an operation, so that something can be outdated.
func seqRandom(seed uint64) (events []seqEvent) {
	r := rand.New(rand.NewPCG(seed, 32))
	pick := func(from ...string) string { return from[r.IntN(len(from))] }
	few := func(least, most int, kinds []string) (some []seqEvent) {
		for _, i := range r.Perm(len(kinds))[:least+r.IntN(most-least+1)] {
			some = append(some, seqEvent{Do: kinds[i]})
		}
		return some
	}
	done := map[string]bool{"add" + alpha: true, "add" + beta: true}
	do := func(e seqEvent) {
		if values := seqValues[e.Do]; values != nil {
			e.To = pick(values...)
		}
		switch e.Do {
		case "break":
			e.At = 1 + r.IntN(6)
		case "lag":
			e.At = []int{1, 4}[r.IntN(2)]
		}
		if opposite, key := seqOpposites[e.Do], e.Do+e.On; opposite != "" {
			if done[key] {
				e = seqEvent{Do: opposite, On: e.On}
			}
			done[key] = !done[key]
		}
		events = append(events, e)
	}
	changes, around, troubles := few(1, 2, seqChanges), few(0, 2, seqAround), few(1, 2, seqTroubles)
	for i, e := range changes {
		switch e.Do {
		case "add", "replace", "grow", "rename", "replicate":
			changes[i].On = pick(alpha, beta, beta)
		}
	}
	for _, e := range []seqEvent{{Do: "lag"}, {Do: "add", On: gamma}} {
		if r.IntN(3) > 0 {
			do(e)
		}
	}
	slow, change := r.IntN(3) > 0, changes[0]
	if r.IntN(8) > 0 {
		do(seqEvent{Do: "roll"})
	}
	for range 2 + r.IntN(6) {
		if len(around) > 0 && r.IntN(2) == 0 {
			do(around[r.IntN(len(around))])
		}
		if r.IntN(2) == 0 {
			change = changes[r.IntN(len(changes))]
		}
		do(change)
		if slow {
			do(seqEvent{Do: "wait"})
		}
		how := seqEvent{Do: "roll"}
		if r.IntN(2) == 0 {
			how = troubles[r.IntN(len(troubles))]
		}
		if do(how); how.Do == "break" {
			do(seqEvent{Do: pick("roll", "short", "short")})
		}
	}
	if r.IntN(6) == 0 {
		do(seqEvent{Do: pick("delete", "delete", "force")})
	}
	return events
}

// happen carries out the event, unless that is impossible in the current state.
func (s *seqWorld) happen(e seqEvent) {
	c, has := s.wish.caches[e.On]
	switch e.Do {
	case "roll", "short", "late":
		s.roll(e.Do)
	case "migrate":
		s.migrate()
	case "break":
		s.at, s.how = e.At, e.To
	case "restart":
		s.connect()
	case "guard", "unguard":
		s.guarded = e.Do == "guard"
	case "block":
		s.noCleaner = "ImagePullBackOff"
	case "unblock":
		s.noCleaner = ""
	case "lag", "quick":
		s.catchUpNow()
		s.lag = time.Duration(e.At) * time.Second
		s.away = s.lag > 0
	case "wait":
		<-time.After(5 * time.Minute)
		s.catchUpNow()
	case "collect":
		if s.undone {
			s.roll("roll")
		}
		s.catchUpNow()
		s.collect()
	case "foreign":
		if name := "registry-" + e.To; s.service(name) == nil && !s.lists(name) {
			s.foreign = name
			s.must(s.shoot.Create(s.t.Context(), &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: name}}))
		}
	case "join":
		if !s.isAsleep && !s.rolled.asleep && !s.undone && len(s.nodes) < 3 { // a node with an old unit heals by itself
			s.join()
			s.nodeGetsItsUnit()
		}
	case "delete", "force":
		s.delete(e.Do == "force")
	default:
		if !s.restored { // changes are not admitted
			return
		}
		s.change(e, c, has)
	}
}

// change carries out an event of the Shoot's owner.
func (s *seqWorld) change(e seqEvent, c seqCache, has bool) {
	wish := &s.wish
	wish.caches = maps.Clone(wish.caches)
	switch {
	case e.Do == "hibernate", e.Do == "wake":
		wish.asleep = e.Do == "hibernate"
	case e.Do == "disable", e.Do == "enable":
		wish.disabled = e.Do == "disable"
	case e.Do == "err":
		wish.mistake = e.To
	case e.Do == "correct":
		wish.mistake = ""
	case e.Do == "add" && !has:
		wish.caches[e.On] = seqCache{class: e.To, size: 10}
	case !has:
	case e.Do == "remove" && len(wish.caches) > 1:
		delete(wish.caches, e.On)
	case e.Do == "replace" && len(wish.caches) > 1: // removed and added again, by two updates
		wish.caches[e.On] = seqCache{class: e.To, size: 10}
	case e.Do == "grow":
		c.size += 10
		wish.caches[e.On] = c
	case e.Do == "replicate":
		c.available = !c.available
		wish.caches[e.On] = c
	case e.Do == "rename":
		for _, other := range wish.caches {
			if e.To != "" && other.suffix == e.To {
				return
			}
		}
		c.suffix = e.To
		wish.caches[e.On] = c
	}
}
