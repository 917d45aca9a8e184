package spec

import (
	"slices"
	"strings"
)

// Role is a part that each testbed has, of which there may be several.
type Role string

// The roles.
const (
	Upstream Role = "upstream" // a registry beyond the shoot
	Cache    Role = "cache"    // the cache of an upstream, in the shoot
	Node     Role = "node"     // a node of the shoot

	Seed      Role = "seed"      // of the seed there is only its API server: seed/api
	Shoot     Role = "shoot"     // shoot/api likewise
	Extension Role = "extension" // the extension in the seed; there is one, without a name
)

// API is the name of the one part of Seed and of Shoot.
const API = "api"

// Target is what is broken: a part of the testbed, by its role and its name.
type Target struct {
	Role Role
	Name string
}

// String returns the target as ParseTarget takes it.
func (t Target) String() string {
	if t.Name == "" {
		return string(t.Role)
	}
	return string(t.Role) + "/" + t.Name
}

// MarshalText implements encoding.TextMarshaler.
func (t Target) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (t *Target) UnmarshalText(text []byte) (err error) {
	*t, err = ParseTarget(string(text))
	return err
}

// ParseTarget takes <role>/<name>, and the role alone where there is one part without a name. That there is such a part is not known here, see Choose.
func ParseTarget(text string) (Target, error) {
	role, name, found := strings.Cut(text, "/")
	if Role(role) == Extension {
		if found {
			return Target{}, misuse("target %q: there is one %s, without a name", text, role)
		}
		return Target{Role: Extension}, nil
	}
	if !found || name == "" {
		return Target{}, misuse("target %q: want <role>/<name>, for example upstream/alpha; roles are %s", text, list(roles()))
	}
	if !slices.Contains(roles(), Role(role)) {
		return Target{}, misuse("target %q: unknown role %q; roles are %s", text, role, list(roles()))
	}
	return Target{Role: Role(role), Name: name}, nil
}

// Choose returns the target with the full name of the part that is meant. Parts are full names by the short ones; either may be
// given, and a full name comes first.
func (t Target) Choose(parts map[string]string) (Target, error) {
	known := []string{}
	for short, full := range parts {
		if t.Name == full {
			return t, nil
		}
		known = append(known, Target{t.Role, short}.String())
	}
	if full, found := parts[t.Name]; found {
		return Target{Role: t.Role, Name: full}, nil
	}
	slices.Sort(known)
	if len(known) == 0 {
		return Target{}, misuse("target %s: the testbed has no %s", t, t.Role)
	}
	return Target{}, misuse("target %s: not there; there are %s", t, list(known))
}

func list[T ~string](words []T) string {
	all := []string{}
	for _, word := range words {
		all = append(all, string(word))
	}
	return strings.Join(all, ", ")
}
