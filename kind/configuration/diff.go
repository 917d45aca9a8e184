package configuration

import (
	"fmt"
	"slices"
	"strings"
)

// Effect says what has to be done for a change.
type Effect string

// The effects, the smallest first.
const (
	// Live changes are made in the clusters that run.
	Live Effect = "in the running testbed"
	// RebuildsShoot changes need a new shoot cluster: what was in it is lost.
	RebuildsShoot Effect = "the shoot cluster is built again"
	// RebuildsAll changes need both clusters anew.
	RebuildsAll Effect = "both clusters are built again"
)

// Change is a field in which two configurations differ.
type Change struct {
	// Field is its path, From and To are the values as they are written in a file; empty for what is not set.
	Field string `json:"field"`
	From  string `json:"from"`
	To    string `json:"to"`
	// Effect is what has to be done for it.
	Effect Effect `json:"effect"`
}

// String describes the change in a few words.
func (c Change) String() string {
	return fmt.Sprintf("%s: %s → %s (%s)", c.Field, orNone(c.From), orNone(c.To), c.Effect)
}

func orNone(value string) string {
	if value == "" {
		return "none"
	}
	return value
}

// Diff returns what has to be changed to bring a testbed from one configuration to another, in the order of the fields. Defaults
// have to be set in both.
func Diff(from, to *Testbed) []Change {
	var changes []Change
	compare := func(effect Effect, field, old, wanted string) {
		if old != wanted {
			changes = append(changes, Change{Field: field, From: old, To: wanted, Effect: effect})
		}
	}
	a, b := from.Shoot, to.Shoot
	compare(RebuildsAll, "nodeImage", from.NodeImage, to.NodeImage)
	compare(RebuildsShoot, "shoot.workers", fmt.Sprint(*a.Workers), fmt.Sprint(*b.Workers))
	compare(RebuildsShoot, "shoot.ipFamily", string(a.IPFamily), string(b.IPFamily))
	compare(Live, "shoot.kubeProxyMode", string(a.KubeProxyMode), string(b.KubeProxyMode))
	compare(RebuildsShoot, "shoot.featureGates", gates(a.FeatureGates), gates(b.FeatureGates))
	compare(Live, "shoot.containerd.pull", string(a.Containerd.Pull), string(b.Containerd.Pull))
	compare(Live, "shoot.containerd.configPath", a.Containerd.ConfigPath, b.Containerd.ConfigPath)
	compare(Live, "shoot.manifest", a.Manifest, b.Manifest)
	compare(Live, "upstreams", names(from.Upstreams), names(to.Upstreams))
	compare(Live, "upstreams[].cached", strings.Join(from.Cached(), ", "), strings.Join(to.Cached(), ", "))
	return changes
}

func gates(set map[string]bool) string {
	var all []string
	for name, on := range set {
		all = append(all, fmt.Sprintf("%s=%t", name, on))
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

func names(upstreams []Upstream) string {
	var all []string
	for _, upstream := range upstreams {
		all = append(all, upstream.Name)
	}
	return strings.Join(all, ", ")
}

// Cached are the names of the upstreams that have a cache in the shoot; none if a manifest says which.
func (t *Testbed) Cached() []string {
	return t.upstreams(func(u Upstream) bool { return u.Cached != nil && *u.Cached })
}

// Direct are the names of the upstreams that nobody caches; none if a manifest says which.
func (t *Testbed) Direct() []string {
	return t.upstreams(func(u Upstream) bool { return u.Cached != nil && !*u.Cached })
}

func (t *Testbed) upstreams(wanted func(Upstream) bool) []string {
	var all []string
	for _, upstream := range t.Upstreams {
		if wanted(upstream) {
			all = append(all, upstream.Name)
		}
	}
	return all
}
