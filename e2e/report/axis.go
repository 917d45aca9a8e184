package report

import (
	"fmt"
	"slices"
	"time"
)

// axis maps times of the run to horizontal positions on the page.
type axis struct{ start, end time.Time }

type (
	// bar is a span of time. Left and Width are percentages of the axis.
	bar struct {
		Left, Width               string
		ID, Name, Class, Duration string
		// Label is the name, or empty if the bar is too narrow for it.
		Label      string
		start, end time.Time
	}
	tick  struct{ Left, Label string }
	track struct {
		Name string
		Bars []*bar
	}
)

// characterWidth is the approximate width of a character in a label, in percent of the page width.
const characterWidth = 0.62

// axis returns the axis from the first to the last time in the report.
func (r *Report) axis() axis {
	var a axis
	for _, phase := range r.Phases {
		a.include(phase.Started, phase.Seconds)
	}
	for _, s := range r.Scenarios {
		a.include(s.Started, s.Seconds)
	}
	a.include(r.Ended, 0)
	return a
}

func (a *axis) include(start time.Time, length float64) {
	if start.IsZero() {
		return
	}
	if a.start.IsZero() || start.Before(a.start) {
		a.start = start
	}
	if end := start.Add(seconds(length)); end.After(a.end) {
		a.end = end
	}
}

func (a axis) length() time.Duration { return a.end.Sub(a.start) }

// share returns the position of the time on the axis, from 0 (start) to 1 (end).
func (a axis) share(t time.Time) float64 {
	if a.length() <= 0 {
		return 0
	}
	return min(max(float64(t.Sub(a.start))/float64(a.length()), 0), 1)
}

func percent(share float64) string { return fmt.Sprintf("%.2f%%", 100*share) }

func (a axis) place(start time.Time, length float64) bar {
	end := start.Add(seconds(length))
	return bar{Left: percent(a.share(start)), Width: percent(a.share(end) - a.share(start)), start: start, end: end}
}

// bar returns a bar, or nil if the phase or scenario did not run and so has no start time.
func (a axis) bar(name, class string, start time.Time, length float64) *bar {
	if start.IsZero() {
		return nil
	}
	b := a.place(start, length)
	b.ID, b.Name, b.Class, b.Duration = id(name), name, class, duration(length)
	if width := 100 * (a.share(b.end) - a.share(start)); width > characterWidth*float64(len(name)+2) {
		b.Label = name
	}
	return &b
}

// ticks returns ticks at round numbers of minutes: at most ten if the run took less than ten hours.
func (a axis) ticks() []tick {
	var minutes int
	for _, minutes = range []int{1, 2, 5, 10, 15, 30, 60} {
		if a.length() < time.Duration(10*minutes)*time.Minute {
			break
		}
	}
	var ticks []tick
	for at := 0; time.Duration(at)*time.Minute < a.length(); at += minutes {
		share := a.share(a.start.Add(time.Duration(at) * time.Minute))
		ticks = append(ticks, tick{percent(share), fmt.Sprintf("%d min", at)})
	}
	return ticks
}

// tracks arranges the bars of phases and scenarios in as few tracks as possible, without overlaps.
func (r *Report) tracks(a axis) []track {
	var phases, scenarios []*bar
	for _, phase := range r.Phases {
		phases = append(phases, a.bar(phase.Name, phaseClass(phase), phase.Started, phase.Seconds))
	}
	for _, s := range r.Scenarios {
		scenarios = append(scenarios, a.bar(s.Name, string(s.Result), s.Started, s.Seconds))
	}
	return append(layOut("Testbed", phases), layOut("Scenarios", scenarios)...)
}

// layOut adds each bar to the first track that is free when the bar starts. The first track gets
// the name.
func layOut(name string, bars []*bar) []track {
	bars = slices.DeleteFunc(bars, func(b *bar) bool { return b == nil })
	slices.SortStableFunc(bars, func(a, b *bar) int { return a.start.Compare(b.start) })
	var tracks []track
	for _, b := range bars {
		i := slices.IndexFunc(tracks, func(t track) bool { return !t.Bars[len(t.Bars)-1].end.After(b.start) })
		if i < 0 {
			i, tracks = len(tracks), append(tracks, track{})
		}
		tracks[i].Bars = append(tracks[i].Bars, b)
	}
	if len(tracks) > 0 {
		tracks[0].Name = name
	}
	return tracks
}
