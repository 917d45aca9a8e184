package fieldbugs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/internal/golden"
)

// TestCatalog: the bugs are numbered without a gap and have all fields, their reports are in known
// projects, and their scenarios exist.
func TestCatalog(t *testing.T) {
	known := scenarios(t)
	for i, bug := range All() {
		if want := fmt.Sprintf("s%d", i+1); bug.ID != want {
			t.Errorf("bug %s, want %s", bug.ID, want)
		}
		if slices.Contains([]string{bug.Title, bug.Symptom, bug.Fault, bug.Expectation, bug.Result}, "") || len(bug.Reports) == 0 || len(bug.Scenarios) == 0 {
			t.Errorf("%s lacks a field", bug.ID)
		}
		for _, report := range bug.Reports {
			if link(report) == "" {
				t.Errorf("%s: %s is not <project>#<number> of a known project", bug.ID, report)
			}
		}
		for _, scenario := range bug.Scenarios {
			if !slices.Contains(known, scenario) {
				t.Errorf("%s: there is no scenario %s", bug.ID, scenario)
			}
		}
	}
}

// scenarios returns the names of all scenarios in e2e.
func scenarios(t *testing.T) (names []string) {
	t.Helper()
	files, err := filepath.Glob("../../e2e/*_test.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("files %v, %v", files, err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range regexp.MustCompile(`rig\.New\("([a-z0-9-]+)",`).FindAllSubmatch(content, -1) {
			names = append(names, string(found[1]))
		}
	}
	return names
}

func TestFind(t *testing.T) {
	for name, want := range map[string]string{"s22": "s22", "S4": "s4", "service-recreated": "s22", "cache-down": "s2 s3 s4", "registries-realm": "s16", "s99": "", "": ""} {
		found, err := Find(name)
		var ids []string
		for _, bug := range found {
			ids = append(ids, bug.ID)
		}
		if got := strings.Join(ids, " "); got != want || (err == nil) != (want != "") {
			t.Errorf("%q is %q, %v, want %q", name, got, err, want)
		}
	}
}

// TestWithBugs: an ID selects exactly the scenarios of its bug. Other expressions select what they
// match.
func TestWithBugs(t *testing.T) {
	selected := func(run string) (names []string) {
		expression := regexp.MustCompile(WithBugs(regexp.MustCompile(run)))
		return slices.DeleteFunc(scenarios(t), func(name string) bool { return !expression.MatchString(name) })
	}
	for _, bug := range All() {
		want := slices.Sorted(slices.Values(bug.Scenarios))
		for _, run := range []string{bug.ID, "^" + bug.ID + "$", "^(" + bug.ID + ")$"} {
			if got := slices.Sorted(slices.Values(selected(run))); !slices.Equal(got, want) {
				t.Errorf("%s selects %v, want %v", run, got, want)
			}
		}
	}
	for run, want := range map[string]string{
		"^tls": "tls tls-flip", "^tls-flip$|s22": "service-recreated tls-flip", "^s2[12]$": "service-recreated volume-unbound",
	} {
		if got := strings.Join(slices.Sorted(slices.Values(selected(run))), " "); got != want {
			t.Errorf("%s selects %s, want %s", run, got, want)
		}
	}
}

func TestHeld(t *testing.T) {
	for scenario, want := range map[string][2]string{ // alone, and when all others have passed
		"cache-down": {"s2, s3, s4 held", "s2, s3, s4 held"}, "credentials": {"s16 held in part", "s16 held"},
		"registries-realm": {"s16 held in part", "s16 held"}, "two-upstreams": {},
	} {
		for i, passed := range []bool{false, true} {
			if got := strings.Join(Held(scenario, func(string) bool { return passed }), "; "); got != want[i] {
				t.Errorf("%s, others passed %t: %q, want %q", scenario, passed, got, want[i])
			}
		}
	}
}

// TestPage compares docs/field-bugs.md with the catalog. `make field-bugs` writes the page.
func TestPage(t *testing.T) {
	golden.Compare(t, "../../../docs/field-bugs.md", page())
}

const head = `# Field bugs

Generated from cachetest/fieldbugs by ` + "`make field-bugs`" + `: do not edit.

Bugs of image pull caches that users reported. On an existing testbed, ` + "`bin/testbed reproduce s22`" + `
runs the [scenario](development.md#add-a-scenario) of a bug. The scenario plants the fault and
proves that the expectation holds. The command ends at the first claim that does not hold, or after
the last one, and leaves the state for inspection. ` + "`make e2e RUN='^s22$' KEEP=1`" + ` does the same, but
cleans up. ` + "`make e2e-all`" + ` runs all scenarios; a line that ends with ` + "`s22 held`" + ` is a result.

A result is the measured time that came closest to its bound, on two cores with everything on one
machine (2026-11-25). Only the bounds are promised. A fault in code font is an argument of
[` + "`testbed fault add`" + `](faults.md).

`

func page() string {
	var text strings.Builder
	text.WriteString(head + "| bug | symptom | command | expectation | result |\n| --- | --- | --- | --- | --- |\n")
	for _, b := range All() {
		fmt.Fprintf(&text, "| [%s](#%s) | %s | `testbed reproduce %s` | %s | %s |\n", b.ID, b.ID, b.Symptom, b.ID, b.Expectation, b.Result)
	}
	for _, b := range All() {
		fmt.Fprintf(&text, "\n## %s\n\n", b.ID)
		title := strings.ToUpper(b.Title[:1]) + b.Title[1:]
		text.WriteString(wrap(fmt.Sprintf("%s. Planted: %s. Proven by `%s`. Reports:", title, b.Fault, strings.Join(b.Scenarios, "` and `"))))
		for _, report := range b.Reports {
			fmt.Fprintf(&text, "[%s](%s)\n", report, link(report))
		}
	}
	return text.String()
}

// wrap returns the text with line breaks between words, at 100 columns.
func wrap(text string) string {
	var wrapped strings.Builder
	column := 0
	for word := range strings.FieldsSeq(text) {
		switch {
		case column == 0:
		case column+1+len(word) > 100:
			wrapped.WriteString("\n")
			column = 0
		default:
			wrapped.WriteString(" ")
			column++
		}
		wrapped.WriteString(word)
		column += len(word)
	}
	return wrapped.String() + "\n"
}

var repositories = map[string]string{
	"containerd": "containerd/containerd", "distribution": "distribution/distribution", "distribution-spec": "opencontainers/distribution-spec",
	"gardener": "gardener/gardener", "gardener-extension-registry-cache": "gardener/gardener-extension-registry-cache", "harbor": "goharbor/harbor",
	"k3s": "k3s-io/k3s", "local-path-provisioner": "rancher/local-path-provisioner", "moby": "moby/moby", "quay": "quay/quay", "spegel": "spegel-org/spegel",
}

// link returns the URL of a report, or an empty string for an unknown project.
func link(report string) string {
	project, number, _ := strings.Cut(report, "#")
	if repositories[project] == "" || number == "" {
		return ""
	}
	return "https://github.com/" + repositories[project] + "/issues/" + number
}
