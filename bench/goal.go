package bench

// Goal is a goal of a benchmark, judged by all measurements to which it applies.
type Goal struct {
	Name string `json:"name"`
	// Judged is false if no measurement applies. Then Held is also false.
	Judged bool `json:"judged"`
	Held   bool `json:"held"`
	// Details has the value of each measurement. Missed are the details of those that miss the goal.
	Details []string `json:"details"`
	Missed  []string `json:"missed"`
}

// Judge adds a measurement.
func (g *Goal) Judge(held bool, detail string) {
	g.Held = held && (g.Held || !g.Judged)
	g.Judged, g.Details = true, append(g.Details, detail)
	if !held {
		g.Missed = append(g.Missed, detail)
	}
}
