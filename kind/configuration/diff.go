package configuration

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Effect is what Up must do to apply a change.
type Effect string

// The effects, from the smallest to the largest.
const (
	Live          Effect = "in the running testbed"
	RebuildsShoot Effect = "the shoot cluster is built again" // and its content is lost
	RebuildsAll   Effect = "both clusters are built again"
)

// Change is a field that differs between two configurations.
type Change struct {
	// Field is the path of the field. From and To are its values as in a file, or empty.
	Field  string `json:"field"`
	From   string `json:"from"`
	To     string `json:"to"`
	Effect Effect `json:"effect"`
}

// String returns one line for users.
func (c Change) String() string {
	return fmt.Sprintf("%s: %s → %s (%s)", c.Field, cmp.Or(c.From, "none"), cmp.Or(c.To, "none"), c.Effect)
}

// Diff returns the changes between two configurations whose defaults are set, in field order.
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
	compare(RebuildsShoot, "shoot.kubeProxyMode", string(a.KubeProxyMode), string(b.KubeProxyMode))
	compare(RebuildsShoot, "shoot.featureGates", gates(a.FeatureGates), gates(b.FeatureGates))
	compare(RebuildsShoot, "shoot.containerd.pull", string(a.Containerd.Pull), string(b.Containerd.Pull))
	compare(RebuildsShoot, "shoot.containerd.configPath", a.Containerd.ConfigPath, b.Containerd.ConfigPath)
	compare(RebuildsShoot, "shoot.containerd.oldWorker", fmt.Sprint(a.Containerd.OldWorker), fmt.Sprint(b.Containerd.OldWorker))
	compare(Live, "shoot.manifest", a.Manifest, b.Manifest)
	fromExtension, fromFields := from.Extension.describe()
	toExtension, toFields := to.Extension.describe()
	compare(RebuildsAll, "extension.name", fromExtension, toExtension)
	if fromExtension == toExtension {
		compare(Live, "extension", fromFields, toFields)
	}
	all := func(Upstream) bool { return true }
	compare(Live, "upstreams", strings.Join(from.upstreams(all), ", "), strings.Join(to.upstreams(all), ", "))
	compare(Live, "upstreams[].cached", strings.Join(from.Cached(), ", "), strings.Join(to.Cached(), ", "))
	return changes
}

// describe returns the name and all fields, or nothing for no extension.
func (e *Extension) describe() (name, fields string) {
	if e == nil {
		return "", ""
	}
	encoded, err := json.Marshal(e)
	if err != nil { // impossible: it was decoded from JSON
		return e.Name, err.Error()
	}
	return e.Name, string(encoded)
}

func gates(set map[string]bool) string {
	var all []string
	for name, on := range set {
		all = append(all, fmt.Sprintf("%s=%t", name, on))
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// Cached returns the names of the upstreams with a cache. If the configuration has the manifest of
// a Shoot, it returns none, because the manifest then lists the caches.
func (t *Testbed) Cached() []string {
	return t.upstreams(func(u Upstream) bool { return u.Cached != nil && *u.Cached })
}

// Direct returns the names of the upstreams without a cache, or none if there is a Shoot manifest.
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
