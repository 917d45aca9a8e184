// Package house contains only tests. They check the rules of this repository that no linter checks:
// documentation matches the code, every folder has a layer and a package comment, no file is too
// long, comments and prose are narrow, and Makefile and Skaffold work as documented. golangci-lint
// checks the other rules, such as the imports between layers (.golangci.yaml).
package house

import (
	"os"
	"strings"
	"testing"
)

// TestHouse checks the repository against its rules.
func TestHouse(t *testing.T) {
	t.Parallel()
	tree, err := load(os.DirFS(root(t)))
	if err != nil {
		t.Fatal(err)
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

// TestRulesFindViolations checks that each rule accepts a small valid tree and finds a planted
// violation.
func TestRulesFindViolations(t *testing.T) {
	t.Parallel()
	const doc = "// Package x says what lives here.\npackage x\n"
	long := "package x\n" + strings.Repeat("// a line\n", maxLines-1)
	wide := "// " + strings.Repeat("x", 200) + "\n"
	const head = "| | original (read) | run by |\n| --- | --- | --- |\n"
	tests := []struct {
		rule, name string
		files      plant
		want       string // part of the only problem; "" if there must be no problem
	}{
		{rule: "package comments", name: "sound", files: plant{"kind/x/doc.go": doc, "kind/x/a.go": "package x\n"}},
		{rule: "package comments", name: "in the main file", files: plant{"kind/x/a.go": doc, "kind/x/b.go": "package x\n"}},
		{rule: "package comments", name: "none", files: plant{"kind/x/doc.go": "package x\n"}, want: "kind/x has package comments in 0 files"},
		{rule: "package comments", name: "two", files: plant{"kind/x/a.go": doc, "kind/x/b.go": doc}, want: `in 2 files ["a.go" "b.go"]`},
		{rule: "package comments", name: "directive", files: plant{"kind/x/a.go": "//go:build x\npackage x\n"}, want: "in 0 files"},
		{rule: "file sizes", name: "sound", files: plant{"kind/x/a.go": doc, "kind/x/b.go": long}},
		{rule: "file sizes", name: "too long", files: plant{"kind/x/a.go": doc, "kind/x/b.sh": long + "#\n"}, want: "b.sh has 401 lines"},
		{rule: "file sizes", name: "generated", files: plant{"kind/x/a.go": doc, "kind/x/b.go": generated + " by x. DO NOT EDIT.\n" + long}},
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
		{rule: "links", name: "no such file", files: plant{"docs/a.md": "[x](b.md)"}, want: "link to b.md"},
		{rule: "links", name: "no such heading", files: plant{"docs/a.md": "[x](b.md#c)", "docs/b.md": "# D\n"}, want: "link to b.md#c"},
		{rule: "make targets", name: "sound", files: plant{"a.md": "`make test` makes sense", "Makefile": "test: unit\n"}},
		{rule: "make targets", name: "unknown", files: plant{"a.md": "    $ make tests\n", "Makefile": "test: unit\n"}, want: "unknown target: make tests"},
		{rule: "layers", name: "sound", files: plant{"api/v1/a.go": doc, "a.go": doc, linterConfig: linterOf("api")}},
		{rule: "layers", name: "a new folder", files: plant{"apis/a.go": doc, linterConfig: linterOf("api")}, want: "apis has no layer"},
		{rule: "layers", name: "another module", files: plant{"x/y/go.mod": "module x", "x/y/a.go": doc}},
		{rule: "layer table", name: "sound", files: plant{architecture: "| `api` | none |", linterConfig: linterOf("api")}},
		{rule: "layer table", name: "imports", files: plant{architecture: "| `api` | `a`, `b` |", linterConfig: linterOf("api", "b", "a")}},
		{rule: "layer table", name: "one less", files: plant{architecture: "| `api` | `a` |", linterConfig: linterOf("api", "b", "a")}, want: "layer api may"},
		{rule: "layer table", name: "missing", files: plant{architecture: "", linterConfig: linterOf("api")}, want: "layer api may"},
		{rule: "layer table", name: "no YAML", files: plant{linterConfig: "a: b: c"}, want: "layer error"},
		{rule: "comment widths", name: "sound", files: plant{"kind/x/a.go": "package x\n\nfunc f() {\n\t// " + strings.Repeat("ü", 96) + "\n}\n"}},
		{rule: "comment widths", name: "too wide", files: plant{"kind/x/a.go": "package x\n\nfunc f() {\n\t// " + strings.Repeat("x", 97) + "\n}\n"}, want: "a.go:4"},
		{rule: "comment widths", name: "not a comment", files: plant{"kind/x/a.go": "package x\n\nvar y = `\n// " + long + "`\nvar z = 1 " + wide}},
		{rule: "comment widths", name: "directive", files: plant{"kind/x/a.go": "package x\n\n//nolint:lll" + wide + "//go:build x" + wide}},
		{rule: "comment widths", name: "URL", files: plant{"kind/x/a.go": "package x\n\n// https://x.test/" + wide}},
		{rule: "comment widths", name: "generated", files: plant{"kind/x/a.go": generated + " by x. DO NOT EDIT.\n\npackage x\n" + wide}},
		{rule: "prose widths", name: "sound", files: plant{"docs/a.md": "x " + strings.Repeat("ü", 98) + "\n"}},
		{rule: "prose widths", name: "too wide", files: plant{"docs/a.md": "# A\n\nx " + strings.Repeat("ü", 99) + "\n"}, want: "docs/a.md:3"},
		{rule: "prose widths", name: "not a page", files: plant{"x/testdata/a.md": "x " + long, "x/a.txt": "x " + wide}},
		{rule: "package maps", name: "sound", files: plant{architecture: "api: types", "api/v1/a.go": doc}},
		{rule: "package maps", name: "a new one", files: plant{"kind/doc.go": doc, "kind/y/a.go": doc, architecture: "kind"}, want: "not name kind/y"},
		{rule: "metrics", name: "sound", files: plant{metricsPage: "`registry_cache_extension_x{y}`", "kind/x/a.go": "package x\n// Name: \"registry_cache_extension_x\"\n"}},
		{rule: "metrics", name: "not documented", files: plant{metricsPage: "x", "kind/x/a.go": "package x\n// Name:  \"registry_proxy_y\"\n"}, want: "not name registry_proxy_y"},
		{rule: "metrics", name: "gone", files: plant{metricsPage: "`registry_cache_extension_z`"}, want: "unknown metric registry_cache_extension_z"},
		{rule: "index", name: "sound", files: plant{index: "[a](a.md)", "docs/a.md": "x"}},
		{rule: "index", name: "not listed", files: plant{index: "[a](a.md)", "docs/a.md": "x", "docs/b.md": "y"}, want: "no link to b.md"},
		{rule: "differences", name: "sound", files: plant{differences: head + "| a | b | `x-y`, `TestX` |\n| c | d | read |\n",
			"e2e/x_test.go": "package e2e\n\nvar y = rig.New(\"x-y\")\n\nfunc TestX(t *testing.T) {}\n"}},
		{rule: "differences", name: "no mark", files: plant{differences: "| | original | run by |\n"}, want: `columns "original" and "run by"`},
		{rule: "differences", name: "no proof", files: plant{differences: head + "| a | b | c |\n"}, want: `nothing runs row "a"`},
		{rule: "differences", name: "gone", files: plant{differences: head + "| a | b | `x-y` |\n"}, want: "unknown scenario or test x-y"},
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
