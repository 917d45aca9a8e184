package spec

import (
	"slices"
	"strings"
)

// Role is the type of a target.
type Role string

// The roles.
const (
	Upstream Role = "upstream" // an upstream registry
	Cache    Role = "cache"    // the cache of an upstream, in the shoot
	Node     Role = "node"     // a node of the shoot
)

// Target is a part of the testbed.
type Target struct {
	Role Role
	Name string
}

// String returns the target in the form that ParseTarget accepts.
func (t Target) String() string { return string(t.Role) + "/" + t.Name }

// MarshalText implements encoding.TextMarshaler.
func (t Target) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (t *Target) UnmarshalText(text []byte) (err error) {
	*t, err = ParseTarget(string(text))
	return err
}

// ParseTarget parses <role>/<name>. It returns a *UsageError for other text.
func ParseTarget(text string) (Target, error) {
	role, name, found := strings.Cut(text, "/")
	if !found || name == "" {
		return Target{}, usageErrorf("target %q: want <role>/<name>, for example upstream/alpha, with one of the roles %s", text, list(Roles()))
	}
	if !slices.Contains(Roles(), Role(role)) {
		return Target{}, usageErrorf("target %q: unknown role %q, use one of %s", text, role, list(Roles()))
	}
	return Target{Role: Role(role), Name: name}, nil
}

// Choose returns the target with its full name, which is one of names. It returns a *UsageError
// unless t contains a full name, or the short form of exactly one.
func (t Target) Choose(names []string, short func(string) string) (Target, error) {
	if slices.Contains(names, t.Name) {
		return t, nil
	}
	var known, matching []string
	for _, name := range names {
		known = append(known, Target{t.Role, name}.String())
		if short(name) == t.Name {
			matching = append(matching, name)
		}
	}
	switch {
	case len(matching) == 1:
		return Target{Role: t.Role, Name: matching[0]}, nil
	case len(known) == 0:
		return Target{}, usageErrorf("target %s: the testbed has no %s", t, t.Role)
	}
	return Target{}, usageErrorf("target %s not found, use one of %s", t, list(known))
}

// ShortHost returns the first label of a host name.
func ShortHost(host string) string {
	label, _, _ := strings.Cut(host, ".")
	return label
}

func list[T ~string](words []T) string {
	all := []string{}
	for _, word := range words {
		all = append(all, string(word))
	}
	return strings.Join(all, ", ")
}
