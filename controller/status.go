package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	extensionscontroller "github.com/gardener/gardener/extensions/pkg/controller"
	v1beta1helper "github.com/gardener/gardener/pkg/api/core/v1beta1/helper"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/controller/cache"
	"github.com/gardener-extensions/registry-cache/controller/certificate"
)

// record is the decoded status of the Extension, which earlier reconciliations wrote.
type record struct {
	// status is the providerStatus: the caches that nodes are configured with. Nil if missing.
	status *v1alpha3.RegistryStatus
	// applied is the config with which the caches were last deployed, including new caches whose
	// deployment has begun. It is from status.state, which Gardener copies to another seed. Nil if
	// missing.
	applied *v1alpha3.RegistryConfig
	// cleanUps is the number of clean-ups that have been started, from status.state.
	cleanUps int64
	// running are the identities of the deployed caches, from status.state.
	running v1alpha3.Identities
	// takingOver is true during the first reconciliation of caches that
	// gardener-extension-registry-cache has deployed. takenOverAt is the timestamp of that
	// reconciliation, until another one has changed the caches, see State.TakenOver.
	takingOver  bool
	takenOverAt string
}

// state returns the content of status.state, nil if there is nothing to keep.
func (r record) state() *v1alpha3.State {
	if r.applied == nil && r.cleanUps == 0 && len(r.running) == 0 {
		return nil
	}
	s := &v1alpha3.State{RegistryConfig: r.applied.DeepCopy(), CleanUps: r.cleanUps, Running: r.running, TakenOver: r.takenOverAt}
	if s.RegistryConfig != nil {
		s.TypeMeta = typeMeta("RegistryConfig")
	}
	return s
}

var errRecord = errors.New("cannot be read")

// recordOf decodes the status of the Extension. It ignores unknown fields of newer versions.
func recordOf(ex *extensionsv1alpha1.Extension) (record, error) {
	var r record
	if raw := ex.Status.ProviderStatus; raw != nil {
		status, err := v1alpha3.DecodeStatus(raw.Raw)
		if err != nil {
			return record{}, fmt.Errorf("providerStatus of Extension %s: %w: %w", client.ObjectKeyFromObject(ex), errRecord, err)
		}
		status.TypeMeta = typeMeta("RegistryStatus")
		r.status = status
	}
	state, err := v1alpha3.DecodeState(ex.Status.State)
	if err != nil {
		return record{}, fmt.Errorf("status.state of Extension %s: %w: %w", client.ObjectKeyFromObject(ex), errRecord, err)
	}
	r.cleanUps = state.CleanUps
	if r.takingOver = r.status != nil && r.status.CABundle == nil; r.takingOver {
		return r, nil // the state is older, and does not describe the running caches
	}
	r.applied, r.running, r.takenOverAt = state.RegistryConfig, state.Running, state.TakenOver
	r.takingOver = r.status != nil && r.takenOverAt != "" && r.takenOverAt == ex.Annotations[v1beta1constants.GardenerTimestamp] // true for a retry
	return r, nil
}

// empty reports whether the status is empty: nothing was ever deployed, or the status was lost.
func (r record) empty() bool { return r.status == nil && r.applied == nil }

// reported returns the caches that nodes are configured with.
func (r record) reported() []v1alpha3.RegistryCacheStatus {
	return ptr.Deref(r.status, v1alpha3.RegistryStatus{}).Caches
}

// configured returns the caches as they were last deployed.
func (r record) configured() []v1alpha3.RegistryCache {
	return ptr.Deref(r.applied, v1alpha3.RegistryConfig{}).Caches
}

// upstreams returns the upstreams whose cache may be deployed, or may be configured on nodes.
func (r record) upstreams() (all []string) {
	for _, c := range r.reported() {
		all = append(all, c.Upstream)
	}
	for _, c := range r.configured() {
		all = append(all, c.Upstream)
	}
	return all
}

// removed returns the upstreams whose configuration may be on nodes, but that are not in config.
func (r record) removed(config *v1alpha3.RegistryConfig) []string {
	isConfigured := func(upstream string) bool { return find(config.Caches, upstream) != nil }
	return sets.List(sets.New(slices.DeleteFunc(r.upstreams(), isConfigured)...))
}

// retained returns the record with only those upstreams that are in config. It keeps the names of
// the others and of their Services: their objects are not deleted yet.
func (r record) retained(config *v1alpha3.RegistryConfig) record {
	r.running = slices.Clone(r.running)
	for i, id := range r.running {
		if was := r.deployed(id.Upstream); was != nil && id.HadService(was) && find(config.Caches, id.Upstream) == nil {
			r.running[i].Previous = append(slices.Clone(id.Previous), v1alpha3.PreviousService{Name: id.ServiceName(was)})
		}
	}
	r.status, r.applied = r.status.DeepCopy(), r.applied.DeepCopy()
	if r.status != nil {
		r.status.Caches = slices.DeleteFunc(r.status.Caches, func(c v1alpha3.RegistryCacheStatus) bool { return find(config.Caches, c.Upstream) == nil })
	}
	if r.applied != nil {
		r.applied.Caches = slices.DeleteFunc(r.applied.Caches, func(c v1alpha3.RegistryCache) bool { return find(config.Caches, c.Upstream) == nil })
	}
	return r
}

// deployed returns the cache of the upstream as it was last deployed, nil if unknown.
func (r record) deployed(upstream string) *v1alpha3.RegistryCache {
	return find(r.configured(), upstream)
}

// endpoints returns the last reported endpoints of the given upstreams, or of all if none is given.
func (r record) endpoints(upstreams ...string) (endpoints []string) {
	for _, c := range r.reported() {
		if len(upstreams) == 0 || slices.Contains(upstreams, c.Upstream) {
			endpoints = append(endpoints, c.Endpoint)
		}
	}
	return endpoints
}

// hadTLS reports whether earlier reconciliations may have issued certificates.
func (r record) hadTLS() bool {
	return r.status != nil && ptr.Deref(r.status.CABundle, "") != "" || slices.ContainsFunc(r.configured(), cache.ServesTLS)
}

func find(caches []v1alpha3.RegistryCache, upstream string) *v1alpha3.RegistryCache {
	if i := slices.IndexFunc(caches, func(c v1alpha3.RegistryCache) bool { return c.Upstream == upstream }); i >= 0 {
		return &caches[i]
	}
	return nil
}

func newStatus(caches []v1alpha3.RegistryCacheStatus, ca *certificate.CA) *v1alpha3.RegistryStatus {
	status := &v1alpha3.RegistryStatus{TypeMeta: typeMeta("RegistryStatus"), Caches: caches, CABundle: new("")}
	if ca != nil {
		*status.CABundle = string(ca.Bundle)
	}
	return status
}

func typeMeta(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: v1alpha3.SchemeGroupVersion.String(), Kind: kind}
}

// write writes the record and the conditions in one request, or in none if nothing changes. An
// interruption between two requests would make the retry clean too many or too few upstreams.
func (a *Actuator) write(ctx context.Context, ex *extensionsv1alpha1.Extension, r record, conditions ...gardencorev1beta1.Condition) error {
	before := ex.DeepCopy()
	current, err := recordOf(ex)
	if err != nil {
		return err
	}
	err = errors.Join(replaceRaw(current.status, r.status, &ex.Status.ProviderStatus), replaceRaw(current.state(), r.state(), &ex.Status.State))
	if err != nil {
		return fmt.Errorf("encode the providerStatus and the state: %w", err)
	}
	return a.patchStatus(ctx, ex, before, conditions...)
}

// writeWithCA writes the record as write does, and adds the CA of the reported caches to the
// providerStatus. It issues no certificates.
func (a *Actuator) writeWithCA(ctx context.Context, log logr.Logger, ex *extensionsv1alpha1.Extension, cluster *extensionscontroller.Cluster, r record) error {
	var ca *certificate.CA
	var err error
	if slices.ContainsFunc(r.reported(), func(c v1alpha3.RegistryCacheStatus) bool { return strings.HasPrefix(c.Endpoint, "https:") }) {
		if ca, err = certificate.Load(ctx, log, a.clock, a.client, cluster, true); err != nil {
			return err
		}
	}
	r.status = newStatus(r.reported(), ca)
	return a.write(ctx, ex, r)
}

// patchStatus writes the conditions and the changes to the status since before, if there are any.
// The conditions are results of clean-ups. It also records them as Events.
func (a *Actuator) patchStatus(ctx context.Context, ex, before *extensionsv1alpha1.Extension, conditions ...gardencorev1beta1.Condition) error {
	ex.Status.Conditions = v1beta1helper.MergeConditions(ex.Status.Conditions, conditions...)
	if equality.Semantic.DeepEqual(before.Status, ex.Status) {
		return nil
	}
	if err := a.client.Status().Patch(ctx, ex, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("write the status of Extension %s: %w", client.ObjectKeyFromObject(ex), err)
	}
	for _, condition := range conditions {
		kind := corev1.EventTypeNormal
		if condition.Status != gardencorev1beta1.ConditionTrue {
			kind = corev1.EventTypeWarning
		}
		a.tell(ex, kind, condition.Reason, "%s", condition.Message)
	}
	return nil
}

// tell records an Event on the Extension about something that happens once and needs no retry.
// Lasting problems are in conditions and in lastError. docs/observability.md lists all reasons.
func (a *Actuator) tell(ex *extensionsv1alpha1.Extension, kind, reason, note string, args ...any) {
	a.events.Eventf(ex, nil, kind, reason, gardencorev1beta1.EventActionReconcile, note, args...)
}

// replaceRaw stores wanted in *to, unless wanted equals current.
func replaceRaw[T any](current, wanted *T, to **runtime.RawExtension) error {
	if equality.Semantic.DeepEqual(current, wanted) {
		return nil
	}
	if *to = nil; wanted == nil {
		return nil
	}
	raw, err := json.Marshal(wanted)
	*to = &runtime.RawExtension{Raw: raw}
	return err
}
