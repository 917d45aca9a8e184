package doctor

import (
	"fmt"
	"io"
	"strings"

	"github.com/gardener-extensions/registry-cache/kind/diagnostics/finding"
	"github.com/gardener-extensions/registry-cache/kind/preflight"
)

// Mark is the severity of an item.
type Mark string

// The marks.
const (
	Fine    Mark = "fine"
	Problem Mark = "problem"
	// Notice is worth a look, but not a problem by itself.
	Notice Mark = "notice"
)

// Item is one thing that was checked.
type Item struct {
	Mark    Mark     `json:"mark"`
	Text    string   `json:"text"`
	Details []string `json:"details,omitempty"`
	// Fix is what a person can do about it.
	Fix string `json:"fix,omitempty"`
}

// Section is the items of one place, for example the machine.
type Section struct {
	Title string `json:"title"`
	Items []Item `json:"items"`
}

// Report is the output of `testbed doctor`.
type Report struct {
	Sections []Section `json:"sections"`
}

// Add adds a section.
func (r *Report) Add(title string, items ...Item) {
	r.Sections = append(r.Sections, Section{Title: title, Items: append([]Item{}, items...)})
}

// Problems returns the number of problems.
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

// Err returns an error with the number of problems, or nil if there are none.
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

// Machine returns the items of a host: its summary, or the checks that failed.
func Machine(host preflight.Host, failed []preflight.Failure) []Item {
	if len(failed) == 0 {
		return []Item{{Mark: Fine, Text: host.String()}}
	}
	var items []Item
	for _, failure := range failed {
		items = append(items, Item{Mark: Problem, Text: failure.Problem, Fix: failure.Fix})
	}
	return items
}

// Findings returns the items of a testbed. A finding that is not certain is a notice.
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
	fine := Item{Mark: Fine, Text: "no problem found in:"}
	for _, check := range finding.Checks() {
		fine.Details = append(fine.Details, check.Name)
	}
	return append([]Item{fine}, items...)
}

var signs = map[Mark]string{Fine: "✓", Problem: "✗", Notice: "!"}

// Write prints the report for people. A fix follows its text unless that is a sentence or has
// details.
func (r *Report) Write(w io.Writer) error {
	var text strings.Builder
	for _, section := range r.Sections {
		fmt.Fprintln(&text, section.Title)
		for _, item := range section.Items {
			line, fix := item.Text, item.Fix
			if fix != "" && len(item.Details) == 0 && !strings.HasSuffix(line, ".") {
				line, fix = line+": "+fix, ""
			}
			fmt.Fprintf(&text, " %s %s\n", signs[item.Mark], line)
			for _, detail := range item.Details {
				fmt.Fprintf(&text, "     %s\n", strings.Join(strings.Fields(detail), " "))
			}
			if fix != "" {
				fmt.Fprintf(&text, "     -> %s\n", fix)
			}
		}
	}
	_, err := io.WriteString(w, text.String())
	return err
}
