package fieldbugs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
	"github.com/gardener-extensions/registry-cache/kind/manifest"
)

// TestCatalog checks that each bug has all fields of the page, and that its Shoot exists.
func TestCatalog(t *testing.T) {
	id := regexp.MustCompile(`^s([1-9]|1[0-9]|2[0-9])$`)
	slug := regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`)
	report := regexp.MustCompile(`^[a-z0-9-]+#[0-9]+$`)
	seen := map[string]bool{}
	for _, bug := range All() {
		t.Run(bug.ID, func(t *testing.T) {
			if !id.MatchString(bug.ID) || seen[bug.ID] {
				t.Errorf("ID %q: want a unique ID from s1 to s25", bug.ID)
			}
			if !slug.MatchString(bug.Slug) || seen[bug.Slug] {
				t.Errorf("slug %q is invalid or not unique", bug.Slug)
			}
			seen[bug.ID], seen[bug.Slug] = true, true
			for _, name := range []string{bug.ID, bug.Slug} {
				if found, err := Find(name); err != nil || found.ID != bug.ID {
					t.Errorf("Find(%q): %s, %v", name, found.ID, err)
				}
			}
			for name, text := range map[string]string{
				"title": bug.Title, "symptom": bug.Symptom, "fault": bug.Fault, "expectation": bug.Expectation,
			} {
				if strings.TrimSpace(text) == "" || strings.Contains(text, "\n") {
					t.Errorf("%s: want one line: %q", name, text)
				}
			}
			if len(bug.Reports) == 0 || slices.ContainsFunc(bug.Reports, func(r string) bool { return !report.MatchString(r) }) {
				t.Errorf("reports: want <project>#<number>: %q", bug.Reports)
			}
			if bug.Known != nil && (bug.Known.Claim == "" || bug.Known.Because == "") {
				t.Error("the mark must name a claim and a reason")
			}
			if bug.Lane != Fast && bug.Lane != Full && bug.Lane != "" || bug.Reproduce == nil {
				t.Errorf("lane %q is unknown, or Reproduce is nil", bug.Lane)
			}
			file, err := os.Open(filepath.Join("../..", bug.shoot()))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = file.Close() }()
			if _, err := manifest.Read(bug.shoot(), file); err != nil {
				t.Errorf("Shoot: %v", err)
			}
		})
	}
}

// TestWriteList checks that the list has a line for each bug, and that Find refuses an unknown ID.
func TestWriteList(t *testing.T) {
	var list strings.Builder
	if err := WriteList(&list); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(list.String(), "\n"); lines != len(All())+1 || !strings.Contains(list.String(), "s22  service-recreated") {
		t.Errorf("%d lines:\n%s", lines, list.String())
	}
	if _, err := Find("s30"); err == nil {
		t.Error("Find returned a bug for s26")
	}
}

// argument matches one argument of a command line: a text in single quotes or without a space.
var argument = regexp.MustCompile(`'[^']*'|\S+`)

// TestFaultsExist checks that the faults of all bugs are valid.
func TestFaultsExist(t *testing.T) {
	for _, bug := range All() {
		for text := range strings.SplitSeq(bug.Fault, "; ") {
			words := argument.FindAllString(text, -1)
			if len(words) < 2 || !strings.Contains(words[0], "/") || strings.HasSuffix(words[0], ",") {
				continue // the reason why the bug needs no fault
			}
			options := map[string][]string{}
			for i := 2; i+1 < len(words); i += 2 {
				options[strings.TrimPrefix(words[i], "--")] = append(options[strings.TrimPrefix(words[i], "--")], strings.Trim(words[i+1], "'"))
			}
			if _, err := spec.New(words[0], words[1], options); err != nil {
				t.Errorf("%s: %v", bug.ID, err)
			}
		}
	}
}
