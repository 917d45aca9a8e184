package house

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

var (
	// notWrapped matches headings, rows of tables, and lines that consist of an image or HTML.
	notWrapped = regexp.MustCompile(`^\s*(#+ |\||!\[.*\)$|<.*>$)`)
	// listItem matches the beginning of an item of a list.
	listItem = regexp.MustCompile(`^\s*([-*+]|\d+\.) +`)
	// oneWord matches a line that cannot wrap: one word or one link, possibly as an item of a list.
	oneWord = regexp.MustCompile(`^\s*(([-*+]|\d+\.) +)?(\[[^\]]*\]\(\S+|\S+)$`)
)

// wideProse finds lines of Markdown that are too wide, except in testdata.
func wideProse(t tree) []string {
	var problems []string
	for _, f := range t {
		if path.Ext(f.path) != ".md" || slices.Contains(strings.Split(f.path, "/"), "testdata") {
			continue
		}
		for _, n := range wideLines(f.text) {
			problems = append(problems, fmt.Sprintf("%s:%d: prose is wider than %d columns", f.path, n, maxWidth))
		}
	}
	return problems
}

// wideLines returns the numbers of the lines of prose that are too wide and can wrap. Code is not
// prose. It is fenced by ``` or indented by four spaces after an empty line. Below an item of a
// list, indented lines are prose.
func wideLines(markdown string) []int {
	var wide []int
	var fenced, code, list bool
	empty := true // whether the previous line is empty
	for i, line := range strings.Split(markdown, "\n") {
		code = strings.HasPrefix(line, "    ") && !list && (empty || code)
		empty = strings.TrimSpace(line) == ""
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
		}
		if fenced || code {
			continue
		}
		list = listItem.MatchString(line) || list && (empty || strings.HasPrefix(line, " "))
		if utf8.RuneCountInString(line) > maxWidth && !notWrapped.MatchString(line) && !oneWord.MatchString(line) {
			wide = append(wide, i+1)
		}
	}
	return wide
}

func TestWideLines(t *testing.T) {
	t.Parallel()
	word := strings.Repeat("x", maxWidth)
	wide := "a " + word + "\n"
	for name, test := range map[string]struct {
		markdown string
		want     []int
	}{
		"paragraph":           {"a\n" + wide + "a\n" + wide, []int{2, 4}},
		"item":                {"- " + wide, []int{1}},
		"below an item":       {"1. a\n\n    " + wide, []int{3}},
		"after a list":        {"- a\n\na\n\n    " + wide, nil},
		"fenced":              {"```text\n" + wide + "```\n" + wide, []int{4}},
		"fenced in an item":   {"- a\n\n  ```\n  " + wide + "  ```\n", nil},
		"indented":            {"a\n\n    " + wide + "    " + wide + "\n    " + wide + wide, []int{7}},
		"indented, no code":   {"a\n    " + wide, []int{2}},
		"heading":             {"## " + wide, nil},
		"number, no heading":  {"#1 " + wide, []int{1}},
		"row, image, HTML":    {"| " + wide + "![a](" + word + ")\n<!-- a " + word + " -->\n![a](b) " + wide, []int{4}},
		"one word":            {word + "x\n- " + word + "\n", nil},
		"one link":            {"1. [a b](" + word + ").\n[a b](" + word + ")\n", nil},
		"a link and one word": {"[a b](" + word + ") a\n", []int{1}},
		"one word and a link": {"a [b](" + word + ")\n", []int{1}},
	} {
		if got := wideLines(test.markdown); !slices.Equal(got, test.want) {
			t.Errorf("%s: wide lines %v, want %v", name, got, test.want)
		}
	}
}
