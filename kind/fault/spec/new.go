package spec

import (
	"net/http"
	"slices"
	"strings"
)

// New returns the fault that is asked for: a target and a kind, for example "upstream/alpha" and "status", and the values of
// the options that were given, by their names. A mistake is a *UseError that says what there is. Whether the target exists is
// not known here, see Target.Choose.
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
	if err := s.refuse(given); err != nil {
		return Fault{}, err
	}
	for _, option := range options {
		values := given[option.Name]
		if len(values) == 0 {
			continue
		}
		if len(values) > 1 && !option.Repeated {
			return Fault{}, misuse("--%s is given %d times; it may be given once", option.Name, len(values))
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

// refuse returns an error for an option that the kind does not have, and for one that it lacks.
func (s shape) refuse(given map[string][]string) error {
	for _, option := range options {
		if len(given[option.Name]) > 0 && !slices.Contains(s.options(), option.Name) {
			return misuse("%s of %s takes no --%s; %s", s.kind, s.role, option.Name, s.accepted())
		}
	}
	if s.needs != "" && len(given[s.needs]) == 0 {
		return misuse("%s of %s needs --%s; %s", s.kind, s.role, s.needs, s.accepted())
	}
	return nil
}

func (s shape) options() []string {
	if s.instant {
		return s.takes
	}
	return append(slices.Clone(s.takes), "for")
}

func (s shape) accepted() string {
	if len(s.options()) == 0 {
		return "it takes no options"
	}
	return "it takes --" + strings.Join(s.options(), ", --")
}
