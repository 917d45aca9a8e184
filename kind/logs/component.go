package logs

import (
	"fmt"
	"slices"
	"strings"
)

// Component is what logs can be asked of.
type Component string

// The components.
const (
	Cache     Component = "cache"     // the caches in the shoot
	Node      Component = "node"      // the units of nodes between API server and a pull
	Upstream  Component = "upstream"  // the access logs of upstreams
	Webhook   Component = "webhook"   // what the webhooks of extension and admission say
	Extension Component = "extension" // the extension in the seed
	GRM       Component = "grm"       // gardener-resource-manager of the shoot and of the seed
	GNA       Component = "gna"       // gardener-node-agent on the workers
)

// Components are all of them.
func Components() []Component {
	return []Component{Cache, Node, Upstream, Webhook, Extension, GRM, GNA}
}

// UseError is a mistake in what somebody asked for. It says what there is.
type UseError struct{ text string }

func (e *UseError) Error() string { return e.text }

// UsageError marks the error for internal/program: exit code 2.
func (*UseError) UsageError() {}

// Misuse returns a UseError.
func Misuse(format string, args ...any) error { return &UseError{fmt.Sprintf(format, args...)} }

// ParseComponent takes the name of a component. The error is a UseError.
func ParseComponent(name string) (Component, error) {
	if i := slices.Index(Components(), Component(name)); i >= 0 {
		return Components()[i], nil
	}
	var names []string
	for _, component := range Components() {
		names = append(names, string(component))
	}
	return "", Misuse("no component %q; there are %s", name, strings.Join(names, ", "))
}

// Choose keeps the streams that are meant: those whose name begins with the word, or has it behind a dash or a slash. Without a
// word it keeps all. None is a UseError.
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
		return nil, Misuse("no log of %q; there are %s", word, strings.Join(names, ", "))
	}
	return kept, nil
}

// matches: "alpha" means registry-alpha-upstream-test-0, "worker" worker and not worker2, "worker/kubelet" one unit.
func matches(name, word string) bool {
	if name == word {
		return true
	}
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
