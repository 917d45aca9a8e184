package house

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
)

// linterOf returns a linter configuration in which the layer may import others.
func linterOf(layer string, others ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "linters: {settings: {depguard: {rules: {everywhere: {deny: []}, %s: {files: ['${base-path}/%s/**'], allow: [", layer, layer)
	for _, other := range append(others, layer, testOnly) {
		fmt.Fprintf(&b, "%s/%s, ", module, other)
	}
	b.WriteString("]}}}}}")
	return b.String()
}

// plant maps the paths of files to their text.
type plant map[string]string

// checkPlanted fails the test unless the rule finds exactly one problem in the files, and this
// problem contains want. If want is "", the rule must find no problem.
func checkPlanted(t *testing.T, name string, files plant, want string) {
	t.Helper()
	planted := fstest.MapFS{}
	for path, text := range files {
		planted[path] = &fstest.MapFile{Data: []byte(text)}
	}
	tree, err := load(planted)
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range rules {
		if rule.name != name {
			continue
		}
		problems := rule.check(tree)
		if want == "" && len(problems) == 0 || want != "" && len(problems) == 1 && strings.Contains(problems[0], want) {
			return
		}
		t.Fatalf("problems %q, want one with %q", problems, want)
	}
	t.Fatalf("no rule %q", name)
}
