package controller

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// seqEvent is something that happens to a Shoot.
//
// Impossible in Gardener v1.147.1, so never generated:
//   - a change of the Shoot's spec, or its deletion, between the start of a migration and the end of
//     Restore (plugin/pkg/shoot/validator/admission.go, isShootInMigrationOrRestorePhase and
//     wasShootRescheduledToNewSeed);
//   - a reconciliation of a Shoot that is being deleted, and the end of a deletion
//     (pkg/gardenlet/controller/shoot/shoot/reconciler.go);
//   - a providerStatus in a new seed: gardenlet restores status.state and its resources
//     (pkg/extensions/customresources.go, RestoreExtensionObjectState);
//   - a migration while gardener-resource-manager does not run: gardenlet wakes up a hibernated
//     control plane first (…/shoot/reconciler_migrate.go, wakeupRequired);
//   - nodes in a hibernated Shoot, and those of before in one that wakes up
//     (…/shoot/reconciler_reconcile.go, Worker before the hibernation of the control plane);
//   - two caches of one upstream, or none at all, other than as a mistake that was admitted.
type seqEvent struct {
	// Do is one of
	//   add, remove, replace (with StorageClass To), grow, rename (with suffix To), replicate (or no
	//     longer): of the cache of On, by the owner of the Shoot;
	//   err (mistake To), correct, hibernate, wake, disable, enable: by the owner, too;
	//   roll (gardenlet reconciles the Shoot), short (but ends after one attempt of the Actuator, for
	//     another reason), late (but ends after the Extension is ready), migrate;
	//   break (the next operation, at request At: the response is lost, the process ends, or the write
	//     of the status is lost), restart: faults;
	//   guard (a policy forbids to delete claims), unguard, block (the cleaner cannot run), unblock,
	//     lag (of gardener-resource-manager, At seconds), quick, wait (five minutes), collect (the
	//     garbage collector runs, 12 hours later), join (a node), foreign (a Service of the owner with
	//     the name registry-To): of the environment;
	//   delete, force: the last event.
	Do, On, To string
	At         int
}

const gamma = "gamma.upstream.test"

// seqKinds are the kinds of events of which a random sequence has some, with their values.
var seqKinds = map[string][]string{
	"add": {"", "other"}, "replace": {"", "other"}, "grow": nil, "rename": {"", "one", "two"}, "replicate": nil,
	"hibernate": nil, "disable": nil, "err": slices.Sorted(maps.Keys(seqMistakes)), "foreign": {"one"},
	"roll": nil, "short": nil, "late": nil, "migrate": nil, "restart": nil, "break": {"lost", "crash", "status"},
	"guard": nil, "block": nil, "lag": nil, "wait": nil, "collect": nil, "join": nil,
}

// seqOpposites are what is done instead of an event that has been done.
var seqOpposites = map[string]string{
	"add": "remove", "hibernate": "wake", "disable": "enable", "err": "correct", "guard": "unguard", "block": "unblock", "lag": "quick",
}

// seqRandom returns the sequence of a seed. It has few kinds of events, and mostly of one cache, so
// that they meet.
func seqRandom(seed uint64) (events []seqEvent) {
	r := rand.New(rand.NewPCG(seed, 32))
	pick := func(from ...string) string { return from[r.IntN(len(from))] }
	kinds := slices.Sorted(maps.Keys(seqKinds))
	r.Shuffle(len(kinds), func(i, k int) { kinds[i], kinds[k] = kinds[k], kinds[i] })
	kinds = append(kinds[:2+r.IntN(5)], "add", "roll", "roll")
	focus, done := pick(alpha, beta), map[string]bool{"add" + alpha: true, "add" + beta: true}
	if r.IntN(8) > 0 {
		events = append(events, seqEvent{Do: "roll"})
	}
	for range 3 + r.IntN(10) {
		e := seqEvent{Do: pick(kinds...)}
		if values := seqKinds[e.Do]; values != nil {
			e.To = pick(values...)
		}
		switch e.Do {
		case "add", "replace", "grow", "rename", "replicate":
			e.On = pick(focus, focus, focus, alpha, beta, gamma)
		case "break":
			e.At = 1 + r.IntN(20)
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
		if r.IntN(3) == 0 {
			events = append(events, seqEvent{Do: "roll"})
		}
	}
	if r.IntN(6) == 0 {
		events = append(events, seqEvent{Do: pick("delete", "delete", "force")})
	}
	return events
}

// happen does the event. What it cannot do in the current state, it leaves out.
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
		s.catchUpNow()
		s.collect()
	case "foreign":
		if name := "registry-" + e.To; s.service(name) == nil {
			s.foreign = name
			s.must(s.shoot.Create(s.t.Context(), &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: name}}))
		}
	case "join":
		if !s.isAsleep && !s.rolled.asleep && len(s.nodes) < 3 {
			s.join()
			s.nodeGetsItsUnit()
		}
	case "delete", "force":
		s.delete(e.Do == "force")
	default:
		if !s.restored { // no change is admitted
			return
		}
		s.change(e, c, has)
	}
}

// change does what the owner of the Shoot wants.
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

// roll acts as gardenlet when it reconciles the Shoot. How it may end early, see seqEvent.
func (s *seqWorld) roll(how string) {
	s.short = how == "short"
	defer func() { s.short = false }()
	s.excused = s.excused || s.noCleaner != ""
	s.rolled = s.wish
	s.syncCluster()
	ex := s.extensionIfAny()
	if ex != nil && (s.wish.disabled || ex.DeletionTimestamp != nil) && !s.removeExtension(ex) {
		return
	}
	if !s.wish.disabled && !s.reconcileExtension() {
		return
	}
	if how == "late" {
		return
	}
	<-time.After(30 * time.Second) // gardenlet looks every 5 seconds, and writes much before the nodes get it
	if s.lag > 0 {
		s.catchUpNow()
	}
	s.expectNoDead()
	s.drop()
	s.setNodes(!s.rolled.asleep)
	s.configureNodes()
	s.excused = s.noCleaner != "" && s.excused
	s.isAsleep = s.rolled.asleep
	s.syncCluster()
}

// removeExtension returns whether the Extension is gone.
func (s *seqWorld) removeExtension(ex *extensionsv1alpha1.Extension) bool {
	if ex.DeletionTimestamp == nil {
		s.must(s.unwatched.Delete(s.t.Context(), ex))
	}
	if err := s.retried((*Actuator).Delete); err != nil {
		if !s.pendingGuarded() && !s.short {
			s.fail("the deletion of the Extension fails: %v", err)
		}
		return false
	}
	s.forget()
	return true
}

func (s *seqWorld) forget() {
	if ex := s.extensionIfAny(); ex != nil {
		ex.Finalizers = nil
		s.must(s.unwatched.Update(s.t.Context(), ex))
		s.must(client.IgnoreNotFound(s.unwatched.Delete(s.t.Context(), ex)))
	}
}

// reconcileExtension returns whether the Extension is ready.
func (s *seqWorld) reconcileExtension() bool {
	do, what := (*Actuator).Reconcile, "the reconciliation"
	switch ex := s.extensionIfAny(); {
	case ex == nil:
		s.must(s.unwatched.Create(s.t.Context(), s.newExtension(nil)))
	case !s.restored:
		do, what = (*Actuator).Restore, "the restoration"
	default:
		if raw := s.rolled.config(); string(raw) != string(ex.Spec.ProviderConfig.Raw) {
			ex.Spec.ProviderConfig.Raw = raw
			ex.Generation++
			s.must(s.unwatched.Update(s.t.Context(), ex))
		}
	}
	running := s.extensionIfAny().Status.State != nil
	err := s.retried(do)
	switch {
	case err == nil:
		s.restored = true
	case s.short, s.pendingGuarded(), s.isForeign(), s.rolled.mistake != "" && s.restored && !(running && s.rolled.asleep):
		// only the owner can help
	case s.rolled.mistake != "" && !s.restored:
		s.fail("the restoration fails for a mistake that cannot be corrected then: %v", err)
	case s.rolled.mistake != "":
		s.fail("hibernation fails for a mistake: %v", err)
	default:
		s.fail("%s fails: %v", what, err)
	}
	return err == nil
}

// migrate moves the control plane to another seed. A Shoot that was never rolled out, or whose
// Extension is being deleted, stays.
func (s *seqWorld) migrate() {
	ex := s.extensionIfAny()
	if ex == nil || ex.DeletionTimestamp != nil || !s.restored {
		return
	}
	s.awake = true
	s.catchUpNow()
	if err := s.retried((*Actuator).Migrate); err != nil && !s.pendingGuarded() {
		s.fail("the migration fails: %v", err)
	} else if err != nil {
		s.guarded = false // the owner must help
		s.must(s.resyncAll())
		s.must(s.retried((*Actuator).Migrate))
	}
	mrs, persisted, now := &resourcesv1alpha1.ManagedResourceList{}, &corev1.SecretList{}, &extensionsv1alpha1.Cluster{}
	s.must(s.unwatched.List(s.t.Context(), mrs))
	if len(mrs.Items) > 0 {
		s.fail("a ManagedResource stays in the old seed: %s", mrs.Items[0].Name)
	}
	s.must(s.unwatched.List(s.t.Context(), persisted, client.MatchingLabels{"persist": "true"}))
	s.must(s.unwatched.Get(s.t.Context(), client.ObjectKey{Name: namespace}, now))
	now.ResourceVersion, now.UID = "", ""
	objects := []client.Object{now}
	for _, secret := range persisted.Items {
		objects = append(objects, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: secret.Name, Labels: secret.Labels}, Data: secret.Data})
	}
	state := s.extensionIfAny().Status.State
	s.awake, s.missed, s.restored, s.rolled = false, map[string]bool{}, false, s.wish
	if !s.rolled.disabled {
		objects = append(objects, s.newExtension(state))
	} else {
		s.restored = true
	}
	s.newSeed(objects...)
	s.connect()
	s.roll("roll")
}

// delete deletes the Shoot. gardenlet wakes it up, and deletes the workers before the Extension.
func (s *seqWorld) delete(force bool) {
	if !s.restored || s.extensionIfAny() == nil {
		return
	}
	s.deleting, s.guarded, s.noCleaner, s.rolled = true, false, "", s.wish
	s.setNodes(false)
	s.syncCluster()
	do, what := (*Actuator).Delete, "the deletion"
	if force {
		do, what = func(a *Actuator, ctx context.Context, log logr.Logger, ex *extensionsv1alpha1.Extension) error {
			return a.ForceDelete(ctx, log, ex)
		}, "the forced deletion"
	}
	ex := s.extensionIfAny()
	s.must(s.unwatched.Delete(s.t.Context(), ex))
	if err := s.retried(do); err != nil {
		s.fail("%s of the Shoot fails: %v", what, err)
	}
	s.forget()
	if force {
		s.catchUpNow() // gardenlet removes the finalizers of what gardener-resource-manager leaves
	}
	s.wish.disabled = true
}
