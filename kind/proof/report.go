package proof

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// maxReason limits a cell of the table, in runes.
const maxReason = 140

// Report has the results of several planted bugs.
type Report struct {
	Findings []Finding `json:"findings"`
	// Seconds is the total duration.
	Seconds float64 `json:"seconds"`
}

// Err returns an error that names the planted bugs that were not caught, or nil.
func (r *Report) Err() error {
	var missed []string
	for _, f := range r.Findings {
		if !f.Caught {
			missed = append(missed, f.Name)
		}
	}
	if len(missed) == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d planted bugs were not caught: %s", len(missed), len(r.Findings), strings.Join(missed, ", "))
}

// Write prints a table of the bugs, the scenarios that caught them, and why each scenario failed.
func (r *Report) Write(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "  PLANTED BUG\tCAUGHT BY\tAFTER\tREASON")
	caught := 0
	for _, f := range r.Findings {
		mark, name := "✗", f.Name
		if f.Caught {
			mark = "✓"
			caught++
		}
		for _, catch := range f.By {
			fmt.Fprintf(table, "%s %s\t%s\t%.0fs\t%s\n", mark, name, catch.Scenario, catch.Seconds, shorten(catch.Reason))
			mark, name = " ", ""
		}
		if f.Problem != "" {
			fmt.Fprintf(table, "%s %s\t-\t\t%s\n", mark, name, shorten(f.Problem))
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "%d of %d planted bugs caught, in %.0f s\n", caught, len(r.Findings), r.Seconds)
	return err
}

// WriteList prints a table of the planted bugs.
func WriteList(w io.Writer, all []Mutant) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "PLANTED BUG\tFILE\tMUST FAIL\tEFFECT")
	for _, m := range all {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", m.Name, m.File, strings.Join(m.Scenarios, ", "), m.Bug)
	}
	return table.Flush()
}

func shorten(text string) string {
	runes := []rune(text)
	if len(runes) <= maxReason {
		return text
	}
	return string(runes[:maxReason-1]) + "…"
}
