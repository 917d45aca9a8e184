package registrycache_test

import (
	"fmt"
	"go/ast"
	"path"
	"regexp"
	"slices"
	"strings"
)

const (
	module = "github.com/gardener-extensions/registry-cache"
	// maxLines is the limit of one hand-written file; smallLines what half of all files stay under.
	maxLines, smallLines = 380, 110
	generated            = "// Code generated"
)

// layers says which other layers the packages of a layer may import. What is not listed is not allowed.
var layers = map[string][]string{
	"":                             {}, // the root: this map
	"api":                          {},
	"charts":                       {},
	"examples":                     {"api", "charts"},
	"nodeconfig":                   {"api"},
	"controller":                   {"api", "charts", "nodeconfig"},
	"webhook":                      {"api", "nodeconfig"},
	"cmd/registry-cache-admission": {"api", "internal/program", "webhook"},
	"cmd/registry-cache":           {"api", "internal/program", "nodeconfig"},
	"cmd/registry-cache-extension": {"api", "charts", "controller", "examples", "internal/program", "nodeconfig", "webhook"},
	"kind":                         {"api", "charts", "examples", "nodeconfig"},
	"cmd/testbed":                  {"e2e/fieldbugs", "internal/program", "kind"},
	"e2e/fieldbugs":                {"kind"},
	"e2e":                          {"api", "charts", "cmd/testbed", "controller", "e2e/fieldbugs", "internal/program", "kind", "nodeconfig"},
	"bench":                        {"charts", "kind"},
	"cmd/bench-controller":         {"bench", "internal/program", "kind"},
	"internal/program":             {},
	testOnly:                       {},
}

// testOnly is what the tests of every layer may import, and nothing else.
const testOnly = "internal/golden"

// testing-only layers and the libraries that nothing else may import.
var (
	testbedLayers    = []string{"kind", "cmd/testbed", "e2e", "e2e/fieldbugs"}
	testbedLibraries = []string{"sigs.k8s.io/kind", "sigs.k8s.io/e2e-framework", "github.com/testcontainers", "github.com/moby/moby"}
	deniedLibraries  = []string{"github.com/stretchr/testify", "github.com/onsi", "github.com/pkg/errors"}
	deniedNames      = []string{"util", "utils", "common", "helper", "helpers", "misc", "shared", "base"}
)

// rules hold for the whole repository. A check returns one text per violation, each naming the file.
var rules = []struct {
	name  string
	check func(tree) []string
}{
	{"arrows", arrows},
	{"test libraries", testLibraries},
	{"package names", packageNames},
	{"package comments", packageComments},
	{"file sizes", fileSizes},
	{"no sleeping", noSleeping},
	{"no next job", noNextJob},
	{"no leftovers", noLeftovers},
	{"links", deadLinks},
	{"make targets", unknownTargets},
	{"house table", houseTable},
	{"package maps", unnamedPackages},
	{"metrics", undocumentedMetrics},
	{"index", unlistedDocuments},
}

func arrows(t tree) []string {
	var problems []string
	for _, f := range t.ownGo() {
		from, ok := layerOf(f.dir())
		if !ok {
			problems = append(problems, f.dir()+" has no place in the house: add its layer and what it may import")
			continue
		}
		for _, imported := range f.imports() {
			if slices.ContainsFunc(testbedLibraries, within(imported)) && !slices.Contains(testbedLayers, from) {
				problems = append(problems, fmt.Sprintf("%s: only the testbed may import %s", f.path, imported))
			}
			own, ok := strings.CutPrefix(imported, module)
			if !ok {
				continue
			}
			to, _ := layerOf(strings.TrimPrefix(own, "/"))
			ofTests := to == testOnly && strings.HasSuffix(f.path, "_test.go")
			if to != from && !ofTests && !slices.Contains(layers[from], to) {
				problems = append(problems, fmt.Sprintf("%s: %s may not import %s", f.path, from, to))
			}
		}
	}
	return problems
}

// layerOf returns the longest layer that the folder is in.
func layerOf(dir string) (string, bool) {
	for d := dir; d != "." && d != ""; d = path.Dir(d) {
		if _, ok := layers[d]; ok {
			return d, true
		}
	}
	return "", dir == "." || dir == ""
}

// within returns a function that says whether the import path is the given prefix or lies below it.
func within(imported string) func(prefix string) bool {
	return func(prefix string) bool { return imported == prefix || strings.HasPrefix(imported, prefix+"/") }
}

func testLibraries(t tree) []string {
	var problems []string
	for _, f := range t.ownGo() {
		for _, imported := range f.imports() {
			if slices.ContainsFunc(deniedLibraries, within(imported)) {
				problems = append(problems, fmt.Sprintf("%s: %s is not used here", f.path, imported))
			}
		}
	}
	return problems
}

func packageNames(t tree) []string {
	var problems []string
	for dir, files := range t.packages() {
		if slices.Contains(deniedNames, path.Base(dir)) {
			problems = append(problems, fmt.Sprintf("%s: the name %s says nothing; name the thing that lives there", dir, path.Base(dir)))
		}
		for _, f := range files {
			name := strings.TrimSuffix(f.ast.Name.Name, "_test")
			if name != "main" && name != path.Base(dir) && dir != "." {
				problems = append(problems, fmt.Sprintf("%s: the package is called %s, its folder %s", f.path, name, path.Base(dir)))
			}
		}
	}
	return problems
}

func packageComments(t tree) []string {
	var problems []string
	for dir, files := range t.packages() {
		i := slices.IndexFunc(files, func(f file) bool { return path.Base(f.path) == "doc.go" })
		switch {
		case i < 0:
			problems = append(problems, dir+" has no doc.go that says what lives there")
		case files[i].ast.Doc == nil:
			problems = append(problems, files[i].path+": no package comment")
		}
	}
	return problems
}

func fileSizes(t tree) []string {
	var problems []string
	small, all := 0, 0
	for _, f := range t {
		if ext := path.Ext(f.path); ext != ".go" && ext != ".sh" || strings.HasPrefix(f.text, generated) {
			continue
		}
		lines := strings.Count(f.text, "\n")
		if lines > maxLines {
			problems = append(problems, fmt.Sprintf("%s has %d lines, the limit is %d: it holds more than one concept", f.path, lines, maxLines))
		}
		all++
		if lines < smallLines {
			small++
		}
	}
	if 2*small < all {
		problems = append(problems, fmt.Sprintf("%d of %d files have less than %d lines, half of all files should", small, all, smallLines))
	}
	return problems
}

func noSleeping(t tree) []string {
	var problems []string
	for _, f := range t {
		if f.ast == nil {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if x, isName := selected(s, ok); isName && x == "time" && s.Sel.Name == "Sleep" {
				problems = append(problems, fmt.Sprintf("%s:%d: wait for the thing itself, with a bound", f.path, f.line(s.Pos())))
			}
			return true
		})
	}
	return problems
}

// selected returns the name before the dot, where there is one.
func selected(s *ast.SelectorExpr, ok bool) (string, bool) {
	if !ok {
		return "", false
	}
	x, ok := s.X.(*ast.Ident)
	if !ok {
		return "", false
	}
	return x.Name, true
}

// nextJob is a shell's wait for the job that ends next, where a command may begin: bash 5.2 forgets one that had ended before another was
// started, and waits for ever. A word after it is a namespace of another program's wait, on a line of its own.
var nextJob = regexp.MustCompile(
	`(^|[;&|({!@"']|\\n|\b(if|elif|while|until|then|do|else)\s)\s*wait(\s+-[fp](\s+\w+)?)*\s+-[a-z]*n\s*([^\sa-z=-]|-p|$)`)

// comment is a line that may name what code may not have.
var comment = regexp.MustCompile(`^\s*(#|//)`)

func noNextJob(t tree) []string {
	var problems []string
	for _, f := range t {
		if path.Ext(f.path) == ".md" {
			continue
		}
		for i, line := range strings.Split(f.text, "\n") {
			if nextJob.MatchString(line) && !comment.MatchString(line) {
				problems = append(problems, fmt.Sprintf("%s:%d: wait for a process by its ID", f.path, i+1))
			}
		}
	}
	return problems
}

// leftovers: marks of unfinished work, and paths of the machine somebody worked on.
var leftovers = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X)\b|(^|[\s"'=:(` + "`" + `])/(wor` + `k|tmp/` + `w|roo` + `t/go)(/|\b)`)

func noLeftovers(t tree) []string {
	var problems []string
	for _, f := range t {
		for i, line := range strings.Split(f.text, "\n") {
			if found := leftovers.FindString(line); found != "" {
				problems = append(problems, fmt.Sprintf("%s:%d: %q has no place here", f.path, i+1, strings.TrimSpace(found)))
			}
		}
	}
	return problems
}
