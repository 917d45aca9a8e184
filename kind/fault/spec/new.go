package spec

import (
	"net/http"
	"slices"
	"strings"
)

// New returns a fault with a target and a kind, for example "upstream/alpha" and "status". given
// has the values of options by name. New returns a *UseError for invalid input. It does not check
// whether the target exists, see Target.Choose.
func New(target, kind string, given map[string][]string) (Fault, error) {
	at, err := ParseTarget(target)
	if err != nil {
		return Fault{}, err
	}
	s, err := shapeOf(at.Role, Kind(kind))
	if err != nil {
		return Fault{}, err
	}
	f := Fault{Target: at, Kind: s.kind, On: s.on}
	if err := s.check(given); err != nil {
		return Fault{}, err
	}
	for _, option := range options {
		values := given[option.Name]
		if len(values) == 0 {
			continue
		}
		if len(values) > 1 && !option.Repeated {
			return Fault{}, misuse("--%s is given %d times, want once", option.Name, len(values))
		}
		if err := option.set(&f, values); err != nil {
			return Fault{}, misuse("--%s %q: %v", option.Name, strings.Join(values, ", "), err)
		}
	}
	if _, given := given["body"]; !given && f.Kind == Status {
		f.Body = http.StatusText(f.Status) + "\n"
	}
	return f, nil
}

// check returns a *UseError for an unsupported option and for a missing required one.
func (s shape) check(given map[string][]string) error {
	for _, option := range options {
		if len(given[option.Name]) > 0 && !slices.Contains(s.options(), option.Name) {
			return misuse("%s of %s has no option --%s: %s", s.kind, s.role, option.Name, s.accepted())
		}
	}
	if s.needs != "" && len(given[s.needs]) == 0 {
		return misuse("%s of %s requires --%s: %s", s.kind, s.role, s.needs, s.accepted())
	}
	return nil
}

func (s shape) options() []string {
	if s.oneShot {
		return s.takes
	}
	return append(slices.Clone(s.takes), "for")
}

func (s shape) accepted() string {
	if len(s.options()) == 0 {
		return "it has no options"
	}
	return "its options are --" + strings.Join(s.options(), ", --")
}
