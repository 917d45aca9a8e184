package report

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"path"
	"strings"
	"time"

	"github.com/gardener-extensions/registry-cache/kind/progress"
)

//go:embed index.html.tmpl
var pageText string

var pageTemplate = template.Must(template.New(HTMLFile).Parse(pageText))

// page is the data for the template. Each Class is a CSS class: passed, failed, skipped or phase.
type page struct {
	// Class and Verdict show the result of the run, or that the run has not ended.
	Class, Verdict                     string
	Passed, Failed, Skipped            int
	Started, Took, CPU, Memory         string
	Versions                           map[string]string
	SetupError                         string
	SetupLinks                         []link
	Ticks                              []tick
	Tracks                             []track
	Red, Phases, Scenarios, NotStarted []row
}

type (
	link struct{ Text, Path string }
	// row is a scenario or a phase.
	row struct {
		ID, Name, Class, Summary, Duration string
		Bar                                *bar
		Reason, Command                    string
		Evidence                           []string
		Steps                              []stepRow
		Links                              []link
	}
	stepRow struct {
		Name, Class, Duration string
		Bar                   bar
	}
)

// HTML renders index.html, one file without dependencies. Links to artifacts are relative.
func (r *Report) HTML() ([]byte, error) {
	var out bytes.Buffer
	err := pageTemplate.Execute(&out, r.page())
	return out.Bytes(), err
}

func (r *Report) page() page {
	a := r.axis()
	p := page{Versions: r.Versions, Ticks: a.ticks(), Tracks: r.tracks(a)}
	p.Passed, p.Failed, p.Skipped = r.Count()
	switch {
	case p.Failed > 0 || r.SetupError != nil || !r.Ended.IsZero() && !r.Green():
		p.Class, p.Verdict = "failed", "Failed"
	case r.Ended.IsZero():
		p.Class, p.Verdict = "skipped", "Not finished"
	default:
		p.Class, p.Verdict = "passed", "Passed"
	}
	if a.length() > 0 {
		p.Started, p.Took = a.start.Format("2006-01-02 15:04:05 MST"), duration(a.length().Seconds())
	}
	if r.CPUSeconds > 0 {
		p.CPU = fmt.Sprintf("%.0f s", r.CPUSeconds)
		p.Memory = fmt.Sprintf("%.1f GiB", float64(r.PeakMemoryBytes)/(1<<30))
	}
	if r.SetupError != nil {
		p.SetupError, p.SetupLinks = r.SetupError.Error(), r.links(setup)
	}
	for _, phase := range r.Phases {
		p.Phases = append(p.Phases, phaseRow(phase, a))
	}
	for _, s := range r.Scenarios {
		switch s.Result {
		case Failed:
			p.Red = append(p.Red, r.scenarioRow(s, a))
		case Skipped:
			p.NotStarted = append(p.NotStarted, r.scenarioRow(s, a))
		case Passed:
			p.Scenarios = append(p.Scenarios, r.scenarioRow(s, a))
		}
	}
	return p
}

func phaseRow(phase progress.Phase, a axis) row {
	return row{
		ID: id(phase.Name), Name: phase.Name, Class: phaseClass(phase), Duration: duration(phase.Seconds), Summary: phase.Detail,
		Bar: a.bar(phase.Name, phaseClass(phase), phase.Started, phase.Seconds),
	}
}

func phaseClass(phase progress.Phase) string {
	if phase.Result == progress.ResultOK {
		return "phase"
	}
	return phase.Result
}

func (r *Report) scenarioRow(s Scenario, a axis) row {
	out := row{
		ID: id(s.Name), Name: s.Name, Class: string(s.Result), Duration: duration(s.Seconds), Reason: s.Reason, Evidence: s.Evidence,
		Links: r.links(s.Name), Bar: a.bar(s.Name, string(s.Result), s.Started, s.Seconds),
	}
	switch {
	case s.Reason != "":
		out.Summary = firstLine(s.Reason)
	case len(s.Evidence) > 0:
		out.Summary = s.Evidence[0]
	}
	if s.Result == Failed {
		out.Command = Command(s.Name)
	}
	// Steps run one after another, so their durations give their positions.
	steps := axis{start: s.Started, end: s.Started.Add(seconds(s.Seconds))}
	from := s.Started
	for _, step := range s.Steps {
		class := "passed"
		if step.Failed {
			class = "failed"
		}
		out.Steps = append(out.Steps, stepRow{step.Name, class, duration(step.Seconds), steps.place(from, step.Seconds)})
		from = from.Add(seconds(step.Seconds))
	}
	return out
}

func (r *Report) links(name string) []link {
	var links []link
	for _, file := range r.Artifacts[name] {
		links = append(links, link{Text: file, Path: path.Join(name, file)})
	}
	return links
}

// id returns the HTML ID for a name: the name with hyphens instead of spaces.
func id(name string) string { return strings.ReplaceAll(name, " ", "-") }

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// duration formats seconds as "12.3 s", and a minute or more as "2 min 05 s".
func duration(s float64) string {
	if s < 60 {
		return fmt.Sprintf("%.1f s", s)
	}
	d := seconds(s).Round(time.Second)
	return fmt.Sprintf("%d min %02d s", int(d.Minutes()), int(d.Seconds())%60)
}
