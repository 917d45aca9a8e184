package logs

import (
	"fmt"
	"slices"
	"strings"
)

// Component is a part of the testbed that has logs.
type Component string

// The components.
const (
	Cache     Component = "cache"     // the caches in the shoot
	Node      Component = "node"      // the systemd units of nodes that pulls need
	Upstream  Component = "upstream"  // the access logs of upstreams
	Webhook   Component = "webhook"   // the webhooks of the extension and of the admission component
	Extension Component = "extension" // the extension in the seed
	GRM       Component = "grm"       // gardener-resource-manager of the shoot and of the seed
	GNA       Component = "gna"       // gardener-node-agent on the workers
)

// Components returns all components.
func Components() []Component {
	return []Component{Cache, Node, Upstream, Webhook, Extension, GRM, GNA}
}

// UseError is a usage error. Its message lists the valid values.
type UseError struct{ text string }

func (e *UseError) Error() string { return e.text }

// UsageError marks the error for internal/program: exit code 2.
func (*UseError) UsageError() {}

// Misuse returns a UseError.
func Misuse(format string, args ...any) error { return &UseError{fmt.Sprintf(format, args...)} }

// ParseComponent returns the component with a name, or a *UseError.
func ParseComponent(name string) (Component, error) {
	if slices.Contains(Components(), Component(name)) {
		return Component(name), nil
	}
	var names []string
	for _, component := range Components() {
		names = append(names, string(component))
	}
	return "", Misuse("unknown component %q, use one of %s", name, strings.Join(names, ", "))
}

// Choose returns the streams whose name starts with the word, or has it after a dash or a slash.
// Without a word it returns all streams. It returns a *UseError if no stream matches.
func Choose(all []Stream, word string) ([]Stream, error) {
	var kept []Stream
	var names []string
	for _, stream := range all {
		names = append(names, stream.Name)
		if word == "" || matches(stream.Name, word) {
			kept = append(kept, stream)
		}
	}
	if len(kept) == 0 && word != "" {
		return nil, Misuse("no log matches %q, use one of %s", word, strings.Join(names, ", "))
	}
	return kept, nil
}

// matches reports whether the word selects the name: "alpha" selects
// registry-alpha-upstream-test-0, "worker" selects worker but not worker2, and "worker/kubelet" one
// unit.
func matches(name, word string) bool {
	for rest := name; ; {
		if after, found := strings.CutPrefix(rest, word); found && (after == "" || strings.ContainsAny(after[:1], "-./")) {
			return true
		}
		i := strings.IndexAny(rest, "-/")
		if i < 0 {
			return false
		}
		rest = rest[i+1:]
	}
}
