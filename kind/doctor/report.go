package doctor

import (
	"fmt"
	"io"
	"strings"

	"github.com/gardener-extensions/registry-cache/kind/diagnostics/finding"
	"github.com/gardener-extensions/registry-cache/kind/preflight"
)

// Mark says what an item means.
type Mark string

// The marks.
const (
	Fine    Mark = "fine"
	Problem Mark = "problem"
	// Notice is worth a look, and no problem by itself.
	Notice Mark = "notice"
)

// Item is one thing that was looked at.
type Item struct {
	Mark    Mark     `json:"mark"`
	Text    string   `json:"text"`
	Details []string `json:"details,omitempty"`
	// Fix is what a person can do about it.
	Fix string `json:"fix,omitempty"`
}

// Section are the items of one place.
type Section struct {
	Title string `json:"title"`
	Items []Item `json:"items"`
}

// Report is what `testbed doctor` tells.
type Report struct {
	Sections []Section `json:"sections"`
}

// Add adds a section.
func (r *Report) Add(title string, items ...Item) {
	r.Sections = append(r.Sections, Section{Title: title, Items: append([]Item{}, items...)})
}

// Problems counts them.
func (r *Report) Problems() int {
	count := 0
	for _, section := range r.Sections {
		for _, item := range section.Items {
			if item.Mark == Problem {
				count++
			}
		}
	}
	return count
}

// Err is nil if there is no problem.
func (r *Report) Err() error {
	switch count := r.Problems(); count {
	case 0:
		return nil
	case 1:
		return fmt.Errorf("1 problem")
	default:
		return fmt.Errorf("%d problems", count)
	}
}

// Machine are the items of a host: what it has, or what it lacks.
func Machine(host preflight.Host, failed []preflight.Failure) []Item {
	if len(failed) == 0 {
		return []Item{{Mark: Fine, Text: host.String()}}
	}
	var items []Item
	for _, failure := range failed {
		items = append(items, Item{
			Mark: Problem, Text: fmt.Sprintf("%s: %s, needed: %s", failure.Check, failure.Found, failure.Needed), Fix: failure.Fix,
		})
	}
	return items
}

// Findings are the items of a testbed that was looked at. What may be a consequence of something else is a notice.
func Findings(all []finding.Finding) []Item {
	var items []Item
	certain := false
	for _, f := range all {
		mark := Notice
		if f.Certain {
			mark, certain = Problem, true
		}
		items = append(items, Item{Mark: mark, Text: f.Problem, Details: f.Details, Fix: f.Fix})
	}
	if certain {
		return items
	}
	fine := Item{Mark: Fine, Text: "nothing is broken of what was looked at:"}
	for _, check := range finding.Checks() {
		fine.Details = append(fine.Details, check.Name)
	}
	return append([]Item{fine}, items...)
}

var signs = map[Mark]string{Fine: "✓", Problem: "✗", Notice: "!"}

// Write prints the report for people.
func (r *Report) Write(w io.Writer) error {
	var text strings.Builder
	for _, section := range r.Sections {
		fmt.Fprintln(&text, section.Title)
		for _, item := range section.Items {
			fmt.Fprintf(&text, " %s %s\n", signs[item.Mark], item.Text)
			for _, detail := range item.Details {
				fmt.Fprintf(&text, "     %s\n", strings.Join(strings.Fields(detail), " "))
			}
			if item.Fix != "" {
				fmt.Fprintf(&text, "     -> %s\n", item.Fix)
			}
		}
	}
	_, err := io.WriteString(w, text.String())
	return err
}
