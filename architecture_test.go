package registrycache_test

import (
	"os"
	"strings"
	"testing"
	"testing/fstest"
)

// TestArchitecture holds the repository to its own rules.
func TestArchitecture(t *testing.T) {
	t.Parallel()
	tree, err := load(os.DirFS("."))
	if err != nil {
		t.Fatal(err)
	}
	if len(tree.packages()) == 0 {
		t.Fatal("no package found: the test does not run at the root of the repository")
	}
	for _, rule := range rules {
		t.Run(rule.name, func(t *testing.T) {
			t.Parallel()
			for _, problem := range rule.check(tree) {
				t.Error(problem)
			}
		})
	}
}

// TestRulesFindViolations plants one violation of each rule in a small sound tree: a rule that lets its violation
// pass, or that finds fault with the sound tree, is worth nothing.
func TestRulesFindViolations(t *testing.T) {
	t.Parallel()
	const doc = "// Package x says what lives here.\npackage x\n"
	long := "package x\n" + strings.Repeat("// a line\n", maxLines-1)
	tests := []struct {
		rule, name string
		files      plant
		want       string // part of the only problem; empty: no problem
	}{
		{rule: "arrows", name: "sound", files: plant{"controller/a.go": importing("api/v1alpha3", "nodeconfig")}},
		{rule: "arrows", name: "api imports ours", files: plant{"api/v1/a.go": importing("nodeconfig")}, want: "api may not import nodeconfig"},
		{rule: "arrows", name: "against the arrow", files: plant{"nodeconfig/a.go": importing("controller/cache")}, want: "nodeconfig may not import controller"},
		{rule: "arrows", name: "testbed", files: plant{"webhook/a.go": importing("kind/engine")}, want: "webhook may not import kind"},
		{rule: "arrows", name: "testbed in a test", files: plant{"webhook/a_test.go": importing("e2e")}, want: "webhook may not import e2e"},
		{rule: "arrows", name: "a new top-level folder", files: plant{"extra/a.go": doc}, want: "extra has no place"},
		{rule: "arrows", name: "testbed's libraries", files: plant{"controller/a.go": "package c\nimport _ \"sigs.k8s.io/kind\"\n"}, want: "sigs.k8s.io/kind"},
		{rule: "arrows", name: "for tests", files: plant{"api/v1/a_test.go": importing("internal/golden")}},
		{rule: "arrows", name: "for tests only", files: plant{"api/v1/a.go": importing("internal/golden")}, want: "internal/golden"},
		{rule: "arrows", name: "another module", files: plant{"kind/image/go.mod": "module x", "kind/image/m.go": importing("e2e")}},
		{rule: "test libraries", name: "sound", files: plant{"api/a_test.go": "package a\nimport _ \"testing\"\n"}},
		{rule: "test libraries", name: "gomega", files: plant{"api/a_test.go": "package a\nimport . \"github.com/onsi/gomega\"\n"}, want: "github.com/onsi/gomega"},
		{rule: "package names", name: "sound", files: plant{"kind/engine/a.go": "package engine\n"}},
		{rule: "package names", name: "catch-all folder", files: plant{"kind/utils/a.go": "package utils\n"}, want: "utils says nothing"},
		{rule: "package names", name: "not its folder's name", files: plant{"controller/cache/a.go": "package extension\n"}, want: "is called extension"},
		{rule: "package comments", name: "sound", files: plant{"kind/x/doc.go": doc, "kind/x/a.go": "package x\n"}},
		{rule: "package comments", name: "no doc.go", files: plant{"kind/x/a.go": doc}, want: "kind/x has no doc.go"},
		{rule: "package comments", name: "empty doc.go", files: plant{"kind/x/doc.go": "package x\n"}, want: "no package comment"},
		{rule: "file sizes", name: "sound", files: plant{"kind/x/a.go": doc, "kind/x/b.go": long}},
		{rule: "file sizes", name: "too long", files: plant{"kind/x/a.go": doc, "kind/x/b.sh": long + "#\n"}, want: "b.sh has 381 lines"},
		{rule: "file sizes", name: "generated", files: plant{"kind/x/a.go": doc, "kind/x/b.go": generated + " by x. DO NOT EDIT.\n" + long}},
		{rule: "file sizes", name: "few small files", files: plant{"a.go": long, "b.go": long, "c.go": doc}, want: "half of all files"},
		{rule: "no sleeping", name: "sound", files: plant{"kind/x/a.go": "package x\n// time." + "Sleep is not used.\nvar _ = time.After\n"}},
		{rule: "no sleeping", name: "in a test", files: plant{"kind/x/a_test.go": "package x\nfunc f() { time.Sleep(1) }\n"}, want: "a_test.go:2"},
		{rule: "no next job", name: "sound", files: plant{"kind/x/a.go": "package x\n// Not wait" + " -n.\n", "a.md": "wait" + " -n"}},
		{rule: "no next job", name: "another program's", files: plant{"kind/x/a.sh": "kubectl wait" + " -n kube-system \\\n--for=x pod; kubectl \\\n" +
			"  wait" + " -n kube-system --for=y pod\nx | wait" + " -no-n\nawait" + " -n\n"}},
		{rule: "no next job", name: "after a path", files: plant{"kind/x/a.sh": "/bin/x >/dev/null & wait" + " -n\n"}, want: "a.sh:1"},
		{rule: "no next job", name: "after a length", files: plant{"kind/x/a.sh": "echo \"${#a}\"; wait" + " -n\n"}, want: "a.sh:1"},
		{rule: "no next job", name: "as a condition", files: plant{"kind/x/a.sh": "\tif ! wait" + " -fn \"$a\" $b; then\n"}, want: "a.sh:1"},
		{rule: "no next job", name: "into a variable", files: plant{"kind/x/a.sh": "\twhile wait" + " -p done -n; do\n"}, want: "a.sh:1"},
		{rule: "no next job", name: "in a string", files: plant{"kind/x/a.go": "package x\nconst y = \"sleep 1 &\\nwait" + " -n\\n\"\n"}, want: "a.go:2"},
		{rule: "no next job", name: "of a shell", files: plant{"kind/x/a.go": "package x\nvar y = f(\"sh -c 'wait" + " -n'\")\n"}, want: "a.go:2"},
		{rule: "no next job", name: "in a script", files: plant{"kind/x/a.sh": "sleep 1 &\nwait" + " -n || true\n"}, want: "a.sh:2"},
		{rule: "no leftovers", name: "sound", files: plant{"docs/a.md": "the workflow of a framework is in ./network\n"}},
		{rule: "no leftovers", name: "mark", files: plant{"docs/a.md": "fine\nTO" + "DO: write this\n"}, want: "docs/a.md:2"},
		{rule: "links", name: "sound", files: plant{"docs/a.md": "# A b, c\n[x](../d/e.go) [y](#a-b-c) [z](https://x.test/y)", "d/e.go": doc}},
		{rule: "links", name: "no such file", files: plant{"docs/a.md": "[x](b.md)"}, want: "no b.md"},
		{rule: "links", name: "no such heading", files: plant{"docs/a.md": "[x](b.md#c)", "docs/b.md": "# D\n"}, want: "no b.md#c"},
		{rule: "make targets", name: "sound", files: plant{"a.md": "`make test` makes sense", "Makefile": "test: unit\n"}},
		{rule: "make targets", name: "unknown", files: plant{"a.md": "    $ make tests\n", "Makefile": "test: unit\n"}, want: "no make tests"},
		{rule: "house table", name: "sound", files: plant{house: tableOfLayers("")}},
		{rule: "house table", name: "a layer less", files: plant{house: tableOfLayers("webhook")}, want: "layer webhook may import"},
		{rule: "package maps", name: "sound", files: plant{"doc.go": "// api: types.\npackage x\n", "api/v1/a.go": doc}},
		{rule: "package maps", name: "a new one", files: plant{"kind/doc.go": doc, "kind/y/a.go": doc, "doc.go": "// kind\npackage x"}, want: "not name kind/y"},
		{rule: "metrics", name: "sound", files: plant{metricsPage: "`registry_cache_extension_x{y}`", "kind/x/a.go": "package x\n// Name: \"registry_cache_extension_x\"\n"}},
		{rule: "metrics", name: "not documented", files: plant{metricsPage: "x", "kind/x/a.go": "package x\n// Name:  \"registry_proxy_y\"\n"}, want: "not name registry_proxy_y"},
		{rule: "metrics", name: "gone", files: plant{metricsPage: "`registry_cache_extension_z`"}, want: "no metric registry_cache_extension_z"},
		{rule: "index", name: "sound", files: plant{index: "[a](a.md)", "docs/a.md": "x"}},
		{rule: "index", name: "not listed", files: plant{index: "[a](a.md)", "docs/a.md": "x", "docs/b.md": "y"}, want: "not lead to b.md"},
		{rule: "no leftovers", name: "machine path", files: plant{"Makefile": "cp /wor" + "k/main/x .\n"}, want: "Makefile:1"},
	}
	seen := map[string]bool{}
	for _, test := range tests {
		seen[test.rule] = seen[test.rule] || test.want != ""
		t.Run(test.rule+"/"+test.name, func(t *testing.T) {
			t.Parallel()
			checkPlanted(t, test.rule, test.files, test.want)
		})
	}
	for _, rule := range rules {
		if !seen[rule.name] {
			t.Errorf("rule %q: no planted violation", rule.name)
		}
	}
}

// tableOfLayers returns the documentation's table without a row for one layer.
func tableOfLayers(without string) string {
	var b strings.Builder
	for layer, imports := range layers {
		cell := "none"
		if len(imports) > 0 {
			cell = "`" + strings.Join(imports, "`, `") + "`"
		}
		if layer != without {
			b.WriteString("| `" + layer + "` | text | " + cell + " |\n")
		}
	}
	return b.String()
}

// plant is the text of files by path.
type plant map[string]string

// importing returns a Go file that imports packages of this module.
func importing(packages ...string) string {
	var b strings.Builder
	b.WriteString("package x\n")
	for _, p := range packages {
		b.WriteString("import _ \"" + module + "/" + p + "\"\n")
	}
	return b.String()
}

// checkPlanted fails unless the rule finds exactly one problem that contains want in the files, or none for want "".
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
