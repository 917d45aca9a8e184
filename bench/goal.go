package bench

import "fmt"

// Goal is what a benchmark should reach, judged by all measurements to which it applies.
type Goal struct {
	Name string
	// Details contains the value of each measurement, and Missed those values that miss the goal.
	Details, Missed []string
}

// Judge adds a measurement.
func (g *Goal) Judge(held bool, detail string) {
	g.Details = append(g.Details, detail)
	if !held {
		g.Missed = append(g.Missed, detail)
	}
}

// Verdict returns whether the goal is held or missed, or that it was not measured.
func (g *Goal) Verdict() string {
	switch {
	case len(g.Details) == 0:
		return "– not measured"
	case len(g.Missed) > 0:
		return fmt.Sprintf("✗ missed in %d of %d", len(g.Missed), len(g.Details))
	default:
		return "✓ held"
	}
}
