package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	"github.com/gardener/gardener/pkg/resourcemanager/controller/garbagecollector/references"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

// seqPatience is how long gardenlet waits for an Extension (DefaultTimeout of its component).
const seqPatience = 3 * time.Minute

// seqWorld is a Shoot with its owner, gardenlet, seed, nodes and gardener-resource-manager.
type seqWorld struct {
	*landscape
	t        *testing.T
	wish     seqWish // in the garden
	rolled   seqWish // the last one that reached the seed
	isAsleep bool    // status.isHibernated
	deleting bool
	forced   bool // gardenlet drops the shoot with everything in it
	restored bool // false from the migration to the end of Restore: no spec changes are admitted
	nodes    map[string]*seqNode
	joined   int
	unit     string            // in the OperatingSystemConfig
	mirrors  map[string]string // the mirrors that the unit configures
	undone   bool              // gardenlet retries within the hour
	dropped  map[string]string // claims by UID that must be deleted, because a rollout removed their cache
	short    bool              // gardenlet does not wait for a second attempt
	foreign  string            // the name of a Service that is not ours
	excused  bool              // the cleaner could not run: nodes may be skipped
	lag      time.Duration     // the delay of gardener-resource-manager
	due      time.Time         // when gardener-resource-manager has caught up
	at       int               // the write to interrupt in the next operation, from 1
	how      string
	cancel   context.CancelFunc
}

// fail ends the sequence with its first fault.
type seqFault string

func (s *seqWorld) fail(format string, args ...any) { panic(seqFault(fmt.Sprintf(format, args...))) }

func (s *seqWorld) must(err error) {
	if err != nil {
		panic(err)
	}
}

func newSeqWorld(t *testing.T) *seqWorld {
	t.Helper()
	s := &seqWorld{
		landscape: newLandscape(t, cluster()), t: t, restored: true,
		wish:    seqWish{caches: map[string]seqCache{alpha: {size: 10}, beta: {size: 10}}},
		nodes:   map[string]*seqNode{"worker-1": {}},
		dropped: map[string]string{},
	}
	s.cleaned = s.clean
	s.connect()
	return s
}

// connect inserts the faults between a new Actuator and its clients.
func (s *seqWorld) connect() {
	s.restart()
	w := s.tap()
	w.fail = func(number int, done bool) error {
		s.catchUpInTime()
		return s.interrupted(w.requests[number-1], done)
	}
}

// interrupted fails, once, the write that a break event has chosen.
func (s *seqWorld) interrupted(request string, done bool) error {
	const reached = -1 // its response is lost
	switch {
	case s.at == reached && done:
		s.at = 0
		return errLost
	case s.at <= 0 || done || strings.Contains(request, " read "):
		return nil
	}
	s.at--
	switch {
	case s.at > 0:
		return nil
	case s.how == "lost":
		s.at = reached
		return nil
	case s.how == "crash":
		s.cancel()
		return context.Canceled
	default:
		return errLost
	}
}

// catchUpInTime makes gardener-resource-manager handle writes once its lag is over.
func (s *seqWorld) catchUpInTime() {
	pending := slices.Contains(slices.Collect(maps.Values(s.missed)), true)
	switch {
	case s.lag == 0 || !pending || !s.away:
		return
	case s.due.IsZero():
		s.due = time.Now().Add(s.lag)
	case !time.Now().Before(s.due):
		s.catchUpNow()
	}
}

func (s *seqWorld) catchUpNow() {
	s.away, s.due = false, time.Time{}
	_ = s.catchUp(s.t.Context()) // failures are retried
	s.away = s.lag > 0
}

func (s *seqWorld) extensionIfAny() *extensionsv1alpha1.Extension {
	ex := &extensionsv1alpha1.Extension{}
	err := s.unwatched.Get(s.t.Context(), client.ObjectKey{Namespace: namespace, Name: v1alpha3.ExtensionType}, ex)
	if apierrors.IsNotFound(err) {
		return nil
	}
	s.must(err)
	return ex
}

// config returns the providerConfig of the wish.
func (w seqWish) config() []byte {
	config := &v1alpha3.RegistryConfig{TypeMeta: typeMeta("RegistryConfig")}
	for _, upstream := range slices.Sorted(maps.Keys(w.caches)) {
		c := w.caches[upstream]
		entry := v1alpha3.RegistryCache{Upstream: upstream, HTTP: &v1alpha3.HTTP{}, Volume: &v1alpha3.Volume{Size: ptr.To(resource.MustParse(fmt.Sprint(c.size, "Gi")))}}
		if c.class != "" {
			entry.Volume.StorageClassName = ptr.To(c.class)
		}
		if c.suffix != "" {
			entry.ServiceNameSuffix = ptr.To(c.suffix)
		}
		if c.available {
			entry.HighAvailability = &v1alpha3.HighAvailability{Enabled: true}
		}
		config.Caches = append(config.Caches, entry)
	}
	if w.mistake != "" {
		seqMistakes[w.mistake](config)
	}
	return encode(config)
}

// syncCluster acts as gardenlet at the start of an operation.
func (s *seqWorld) syncCluster() {
	now := &extensionsv1alpha1.Cluster{}
	s.must(s.unwatched.Get(s.t.Context(), client.ObjectKey{Name: namespace}, now))
	now.Spec = cluster(func(shoot *gardencorev1beta1.Shoot) {
		if s.rolled.asleep {
			hibernating(shoot)
		}
		shoot.Status.IsHibernated = s.isAsleep
		if s.deleting {
			deleting(shoot)
		}
	}).Spec
	s.must(s.unwatched.Update(s.t.Context(), now))
	s.due = time.Time{}
	_ = s.catchUp(s.t.Context())
}

// pendingGuarded reports whether a policy of the owner prevents a deletion by
// gardener-resource-manager. Only the owner can fix that.
func (s *seqWorld) pendingGuarded() bool {
	mrs := &resourcesv1alpha1.ManagedResourceList{}
	s.must(s.unwatched.List(s.t.Context(), mrs))
	return s.guarded && slices.ContainsFunc(mrs.Items, func(mr resourcesv1alpha1.ManagedResource) bool { return mr.DeletionTimestamp != nil })
}

// service returns the Service in the shoot, nil if there is none.
func (s *seqWorld) service(name string) *corev1.Service {
	service := &corev1.Service{}
	err := s.shoot.Get(s.t.Context(), client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: name}, service)
	if apierrors.IsNotFound(err) {
		return nil
	}
	s.must(err)
	return service
}

// lists reports whether gardener-resource-manager still deletes a Service of this name. It deletes
// by name, even a Service that the owner has created in the meantime.
func (s *seqWorld) lists(name string) bool {
	mrs := &resourcesv1alpha1.ManagedResourceList{}
	s.must(s.unwatched.List(s.t.Context(), mrs))
	return slices.ContainsFunc(mrs.Items, func(mr resourcesv1alpha1.ManagedResource) bool {
		return slices.ContainsFunc(mr.Status.Resources, func(r resourcesv1alpha1.ObjectReference) bool { return r.Kind == "Service" && r.Name == name })
	})
}

// isForeign reports whether a cache is configured with the name of a foreign Service. Only the
// owner can fix that.
func (s *seqWorld) isForeign() bool {
	for _, c := range s.rolled.caches {
		if s.foreign != "" && s.foreign == "registry-"+c.suffix {
			return true
		}
	}
	return false
}

// claims returns the UIDs of the claims, with the names of the claims.
func (s *seqWorld) claims() map[string]string {
	list, uids := &corev1.PersistentVolumeClaimList{}, map[string]string{}
	s.must(s.shoot.List(s.t.Context(), list))
	for _, claim := range list.Items {
		uids[string(claim.UID)] = claim.Name
	}
	return uids
}

// drop records the claims of caches that are not in the wish: their content must not come back. A
// rollout of a mistake removes no cache.
func (s *seqWorld) drop() {
	if s.rolled.mistake != "" && !s.rolled.disabled {
		return
	}
	for uid, name := range s.claims() {
		kept := false
		for upstream := range s.rolled.caches {
			kept = kept || strings.HasPrefix(name, "cache-volume-registry-"+strings.ReplaceAll(upstream, ".", "-")+"-")
		}
		if (!kept || s.rolled.disabled) && !s.guarded {
			s.dropped[uid] = name
		}
	}
}

// setNodes acts as machine-controller-manager.
func (s *seqWorld) setNodes(running bool) {
	if !running {
		for name := range s.nodes {
			s.must(client.IgnoreNotFound(s.shoot.Delete(s.t.Context(), worker(name, true))))
			delete(s.nodes, name)
		}
		return
	}
	if len(s.nodes) == 0 {
		s.join()
	}
}

// nodeGetsItsUnit gives nodes without a unit the current one, if there is any.
func (s *seqWorld) nodeGetsItsUnit() {
	for _, node := range s.nodes {
		if node.unit == "" {
			node.unit, node.mirrors = s.unit, maps.Clone(s.mirrors)
		}
	}
}

func (s *seqWorld) join() {
	s.joined++
	name := fmt.Sprint("joined-", s.joined)
	s.must(s.shoot.Create(s.t.Context(), worker(name, true)))
	s.nodes[name] = &seqNode{mirrors: map[string]string{}}
}

// collect acts as the garbage collector of gardener-resource-manager, which runs every 12 hours in
// the seed and in the shoot (pkg/resourcemanager/controller/garbagecollector).
func (s *seqWorld) collect() {
	<-time.After(12 * time.Hour)
	for _, c := range []client.Client{s.unwatched, s.shoot} {
		mrs, sets, pods, secrets := &resourcesv1alpha1.ManagedResourceList{}, &appsv1.StatefulSetList{}, &corev1.PodList{}, &corev1.SecretList{}
		var users []metav1.ObjectMeta
		s.must(errors.Join(c.List(s.t.Context(), mrs), c.List(s.t.Context(), sets), c.List(s.t.Context(), pods),
			c.List(s.t.Context(), secrets, client.MatchingLabels{references.LabelKeyGarbageCollectable: references.LabelValueGarbageCollectable})))
		for _, mr := range mrs.Items {
			users = append(users, mr.ObjectMeta)
		}
		for _, set := range sets.Items {
			users = append(users, set.ObjectMeta)
		}
		for _, pod := range pods.Items {
			users = append(users, pod.ObjectMeta)
		}
		for _, secret := range secrets.Items {
			used := slices.ContainsFunc(users, func(user metav1.ObjectMeta) bool {
				return user.Annotations[references.AnnotationKey(references.KindSecret, secret.Name)] == secret.Name
			})
			if !used {
				s.must(c.Delete(s.t.Context(), &secret))
			}
		}
	}
}
