package controller

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

// seqWish is what the owner of the Shoot wants. It is in the garden, and reaches the seed only when
// gardenlet reconciles the Shoot.
type seqWish struct {
	caches   map[string]seqCache // by upstream
	disabled bool
	asleep   bool
	mistake  string // a mistake in the providerConfig, see seqMistakes
}

type seqCache struct {
	class, suffix string
	available     bool
	size          int // in Gi
}

// seqMistakes make a providerConfig invalid. Each is possible in a Shoot: no admission ran during
// the update, or a referenced object has changed.
var seqMistakes = map[string]func(*v1alpha3.RegistryConfig){
	"reference": func(c *v1alpha3.RegistryConfig) { c.Caches[0].SecretReferenceName = ptr.To("gone") },
	"empty":     func(c *v1alpha3.RegistryConfig) { c.Caches = nil },
	"url":       func(c *v1alpha3.RegistryConfig) { c.Caches[0].RemoteURL = ptr.To("ftp://alpha.upstream.test") },
	"kind":      func(c *v1alpha3.RegistryConfig) { c.Kind = "Other" },
}

// expected returns what must exist in a shoot that is awake, and nothing else: one line per object.
func (w seqWish) expected(nodes []string) (lines []string) {
	if w.disabled {
		return nil
	}
	for upstream, c := range w.caches {
		name := "registry-" + strings.ReplaceAll(upstream, ".", "-")
		replicas := 1
		if c.available {
			replicas = 2
			lines = append(lines, "PodDisruptionBudget: "+name, "Service: peers-"+name)
		}
		service := name
		if c.suffix != "" {
			service = "registry-" + c.suffix
		}
		lines = append(lines, "status: "+upstream, "Service: "+service+" of "+upstream, "NetworkPolicy: "+name,
			fmt.Sprintf("StatefulSet: %s of %d, available %t, class %q", name, replicas, c.available, c.class))
		for ordinal := range replicas {
			lines = append(lines, fmt.Sprintf("claim: cache-volume-%s-%d of class %q", name, ordinal, c.class), fmt.Sprintf("pod: %s-%d", name, ordinal))
		}
		for _, node := range nodes {
			lines = append(lines, fmt.Sprintf("mirror: %s on %s by %s", upstream, node, service))
		}
	}
	slices.Sort(lines)
	return lines
}

// observed returns what exists, in the format of expected.
func (s *seqWorld) observed() (lines []string) {
	services, sets, claims, pods := &corev1.ServiceList{}, &appsv1.StatefulSetList{}, &corev1.PersistentVolumeClaimList{}, &corev1.PodList{}
	daemons, budgets, policies := &appsv1.DaemonSetList{}, &policyv1.PodDisruptionBudgetList{}, &networkingv1.NetworkPolicyList{}
	for _, list := range []client.ObjectList{services, sets, claims, pods, daemons, budgets, policies} {
		s.must(s.shoot.List(s.t.Context(), list))
	}
	byIP := map[string]string{}
	for _, service := range services.Items {
		line := "Service: " + service.Name
		if upstream := service.Annotations["upstream"]; upstream != "" {
			line += " of " + upstream
			byIP["http://"+service.Spec.ClusterIP+":5000 "+upstream] = service.Name
		}
		lines = append(lines, line)
	}
	for _, set := range sets.Items {
		lines = append(lines, fmt.Sprintf("StatefulSet: %s of %d, available %t, class %q", set.Name, *set.Spec.Replicas,
			set.Labels["high-availability-config.resources.gardener.cloud/type"] != "", ptr.Deref(set.Spec.VolumeClaimTemplates[0].Spec.StorageClassName, "")))
	}
	for _, claim := range claims.Items {
		line := fmt.Sprintf("claim: %s of class %q", claim.Name, ptr.Deref(claim.Spec.StorageClassName, ""))
		upstream, _, _ := strings.Cut(strings.TrimPrefix(claim.Name, "cache-volume-registry-"), "-")
		if size := claim.Spec.Resources.Requests[corev1.ResourceStorage]; size.Value() < int64(s.wish.caches[upstream+".upstream.test"].size)<<30 {
			line += " of " + size.String() // a larger claim keeps its size
		}
		lines = append(lines, line)
	}
	for _, pod := range pods.Items {
		lines = append(lines, "pod: "+pod.Name)
	}
	for _, daemon := range daemons.Items {
		lines = append(lines, "DaemonSet: "+daemon.Name)
	}
	for _, budget := range budgets.Items {
		lines = append(lines, "PodDisruptionBudget: "+budget.Name)
	}
	for _, policy := range policies.Items {
		lines = append(lines, "NetworkPolicy: "+policy.Name)
	}
	for name, node := range s.nodes {
		for upstream, endpoint := range node.mirrors {
			lines = append(lines, fmt.Sprintf("mirror: %s on %s by %s", upstream, name, cmp.Or(byIP[endpoint+" "+upstream], "nothing")))
		}
	}
	for upstream := range s.reported() {
		lines = append(lines, "status: "+upstream)
	}
	slices.Sort(lines)
	return lines
}

// compare returns the first difference between what must exist and what exists.
func (s *seqWorld) compare() string {
	want, got := s.wish.expected(slices.Sorted(maps.Keys(s.nodes))), s.observed()
	if s.foreign != "" {
		want = append(want, "Service: "+s.foreign)
	}
	var missing, odd []string
	for _, line := range want {
		if !slices.Contains(got, line) {
			missing = append(missing, line)
		}
	}
	for _, line := range got {
		if !slices.Contains(want, line) {
			odd = append(odd, line)
		}
	}
	switch {
	case len(odd) > 0:
		return fmt.Sprintf("unexpected %s\nunexpected %q, missing %q", odd[0], odd, missing)
	case len(missing) > 0:
		return fmt.Sprintf("missing %s\nmissing %q", missing[0], missing)
	}
	return ""
}

// expectNoDead fails if a node uses a mirror whose Service is gone, at any time: a Service must not
// be deleted before the nodes are clean. A cleaner that cannot run is an excuse.
func (s *seqWorld) expectNoDead() {
	if s.excused || s.deleting {
		return
	}
	for _, line := range s.observed() {
		if strings.HasPrefix(line, "mirror: ") && strings.HasSuffix(line, " by nothing") {
			s.fail("dead %s: the Service is gone before the node knows", line)
		}
	}
}

// seqNode is a node: its last unit, and the mirrors of containerd.
type seqNode struct {
	unit    string
	mirrors map[string]string // endpoints by upstream
}

// reported returns the endpoints of the providerStatus by upstream.
func (s *seqWorld) reported() map[string]string {
	status := struct {
		Caches []struct{ Upstream, Endpoint string }
	}{}
	endpoints := map[string]string{}
	if ex := s.extensionIfAny(); ex != nil && ex.Status.ProviderStatus != nil {
		s.must(json.Unmarshal(ex.Status.ProviderStatus.Raw, &status))
	}
	for _, c := range status.Caches {
		endpoints[c.Upstream] = c.Endpoint
	}
	return endpoints
}

// configureNodes acts as gardenlet, our webhook for the OperatingSystemConfig, and
// gardener-node-agent. A node gets the mirrors of the status, unless its unit is the same as
// before: then gardener-node-agent does nothing. A removed unit leaves its mirrors, but a unit that
// starts removes those that it does not list.
func (s *seqWorld) configureNodes() {
	if s.rolled.asleep || s.deleting {
		return // the webhook does not touch the OperatingSystemConfig
	}
	endpoints, unit := s.reported(), ""
	if ex := s.extensionIfAny(); ex != nil && ex.DeletionTimestamp == nil {
		state := struct{ CleanUps int }{}
		if ex.Status.State != nil {
			s.must(json.Unmarshal(ex.Status.State.Raw, &state))
		}
		unit = fmt.Sprint(endpoints, state.CleanUps)
	}
	s.unit, s.mirrors = unit, endpoints
	for _, node := range s.nodes {
		if unit == "" && s.excused {
			clear(node.mirrors) // someone removes what the cleaner could not
		}
		if unit != "" && node.unit != unit {
			node.mirrors = maps.Clone(endpoints)
		}
		node.unit = unit
	}
}

// clean acts as the cleaner on a node.
func (s *seqWorld) clean(name string, args []string) {
	node := s.nodes[name]
	if node == nil {
		return
	}
	for _, arg := range args {
		if arg == "--all" {
			clear(node.mirrors)
		}
		delete(node.mirrors, strings.TrimPrefix(arg, "--upstream="))
	}
}
