package registry

import (
	"fmt"
	"reflect"
	"slices"
	"sort"
	"strings"

	"github.com/gardener-extensions/registry-cache/internal/registryprofile"
)

// diffTries bounds the attempts to shrink a failure.
const diffTries = 80

// diffShrink returns a smaller schedule that fails in the same way.
func diffShrink(s diffSchedule, fails func(diffSchedule) bool) diffSchedule {
	tried := map[string]bool{}
	for again := true; again; {
		again = false
		for _, smaller := range diffSmaller(s) {
			text := smaller.String()
			if tried[text] || len(tried) >= diffTries {
				continue
			}
			tried[text] = true
			if fails(smaller) {
				s, again = smaller, true
				break
			}
		}
	}
	return s
}

// diffSmaller returns schedules, each of which is smaller in one way.
func diffSmaller(s diffSchedule) (all []diffSchedule) {
	add := func(change func(*diffSchedule)) {
		c := s
		c.Steps = nil
		for _, step := range s.Steps {
			c.Steps = append(c.Steps, slices.Clone(step))
		}
		c.Profile.Answers, c.Profile.RedirectTo = slices.Clone(s.Profile.Answers), slices.Clone(s.Profile.RedirectTo)
		change(&c)
		all = append(all, c)
	}
	if last := len(s.Steps) - 1; last > 0 {
		add(func(c *diffSchedule) { c.Steps = c.Steps[last:] })
	}
	if !reflect.ValueOf(s.Profile).IsZero() {
		add(func(c *diffSchedule) { c.Profile = registryprofile.Profile{} })
	}
	for i := range s.Steps {
		add(func(c *diffSchedule) { c.Steps = slices.Delete(c.Steps, i, i+1) })
	}
	for i, step := range s.Steps {
		for k := range step {
			if len(step) > 1 {
				add(func(c *diffSchedule) { c.Steps[i] = slices.Delete(c.Steps[i], k, k+1) })
			}
			simpler := step[k]
			simpler.Times = 0
			if simpler != step[k] {
				add(func(c *diffSchedule) { c.Steps[i][k] = simpler })
			}
			if simpler = step[k]; !step[k].event() && step[k].Repo != diffApp {
				simpler.Repo = diffApp
				add(func(c *diffSchedule) { c.Steps[i][k] = simpler })
			}
		}
	}
	fields := reflect.ValueOf(s.Profile)
	for i := range fields.NumField() {
		if !fields.Field(i).IsZero() {
			add(func(c *diffSchedule) { reflect.ValueOf(&c.Profile).Elem().Field(i).SetZero() })
		}
	}
	for i := range s.Profile.Answers {
		if len(s.Profile.Answers) > 1 {
			add(func(c *diffSchedule) { c.Profile.Answers = slices.Delete(c.Profile.Answers, i, i+1) })
		}
	}
	if s.IP {
		add(func(c *diffSchedule) { c.IP = false })
	}
	if s.Login {
		add(func(c *diffSchedule) { c.Login = false })
	}
	return all
}

// outline returns the structure of the schedule, without values.
func (s diffSchedule) outline() string {
	var parts []string
	for field, value := range reflect.ValueOf(s.Profile).Fields() {
		if !value.IsZero() {
			parts = append(parts, field.Name)
		}
	}
	for _, step := range s.Steps {
		for _, a := range step {
			parts = append(parts, a.Do)
		}
	}
	return strings.Join(parts, " ")
}

// String returns the schedule as a Go literal.
func (s diffSchedule) String() string { return diffLiteral(reflect.ValueOf(s)) }

func diffLiteral(v reflect.Value) string {
	var parts []string
	switch v.Kind() {
	case reflect.Struct:
		for field, value := range v.Fields() {
			if !value.IsZero() {
				parts = append(parts, field.Name+": "+diffLiteral(value))
			}
		}
	case reflect.Slice:
		for _, value := range v.Seq2() {
			parts = append(parts, diffLiteral(value))
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			parts = append(parts, diffLiteral(key)+": "+diffLiteral(v.MapIndex(key)))
		}
		sort.Strings(parts)
	default:
		return fmt.Sprintf("%#v", v.Interface())
	}
	name := strings.ReplaceAll(v.Type().String(), "registry.", "")
	return name + "{" + strings.Join(parts, ", ") + "}"
}
