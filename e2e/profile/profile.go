package profile

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"text/tabwriter"
	"time"
)

// interval is the time between samples. At this interval, reading /proc costs about 1% of a CPU.
const interval = time.Second

// minShare is the share of the total below which a component is not listed on its own.
const minShare = 0.005

// sample is the CPU time since the previous sample.
type sample struct {
	start, end time.Time
	seconds    float64
}

// Profile is the CPU time that the machine used.
type Profile struct {
	samples    []sample
	components map[string]float64
}

// Span is a part of the run with a name.
type Span struct {
	Name       string
	Start, End time.Time
}

// Profiler records a Profile in the background.
type Profiler struct {
	read func() (reading, error)

	mu      sync.Mutex
	last    reading
	lastAt  time.Time
	profile Profile
	err     error

	stop    chan struct{}
	stopped sync.WaitGroup
}

// Start returns a Profiler that reads the counters of all processes every second, until Stop.
func Start() *Profiler {
	return start(read)
}

func start(read func() (reading, error)) *Profiler {
	p := &Profiler{read: read, lastAt: time.Now(), stop: make(chan struct{}), profile: Profile{components: map[string]float64{}}}
	p.last, p.err = read()
	p.stopped.Go(func() {
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-p.stop:
				return
			case <-ticker.C:
				p.sample(time.Now())
			}
		}
	})
	return p
}

func (p *Profiler) sample(now time.Time) {
	current, err := p.read()
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.err = err
		return
	}
	if p.last.processes != nil { // without an earlier reading, the difference would be the time since boot
		p.profile.add(sample{p.lastAt, now, current.busy - p.last.busy}, secondsByComponent(p.last.processes, current.processes))
	}
	p.last, p.lastAt = current, now
}

func (p *Profile) add(s sample, components map[string]float64) {
	p.samples = append(p.samples, s)
	for component, seconds := range components {
		p.components[component] += seconds
	}
}

// Stop ends the recording, and returns the profile and the error of the last failed reading.
func (p *Profiler) Stop() (Profile, error) {
	close(p.stop)
	p.stopped.Wait()
	p.sample(time.Now())
	return p.profile, p.err
}

func (p Profile) total() (seconds float64) {
	for _, s := range p.samples {
		seconds += s.seconds
	}
	return seconds
}

// secondsIn returns the machine's CPU seconds in each span, shared equally where spans overlap.
func (p Profile) secondsIn(spans []Span) []float64 {
	result := make([]float64, len(spans))
	for _, s := range p.samples {
		overlaps, sum := make([]float64, len(spans)), 0.0
		for i, span := range spans {
			start := slices.MaxFunc([]time.Time{s.start, span.Start}, time.Time.Compare)
			end := slices.MinFunc([]time.Time{s.end, span.End}, time.Time.Compare)
			overlaps[i] = max(0, end.Sub(start).Seconds())
			sum += overlaps[i]
		}
		for i, overlap := range overlaps {
			if overlap > 0 {
				result[i] += s.seconds * overlap / max(sum, s.end.Sub(s.start).Seconds())
			}
		}
	}
	return result
}

// Write prints the profile as tables: one for each group, with its spans in the given order, and
// one for the components, the largest first.
func (p Profile) Write(w io.Writer, groups ...Group) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, group := range groups {
		fmt.Fprintf(table, "CPU s\tseconds\t  %s\n", group.Title)
		for i, seconds := range p.secondsIn(group.Spans) {
			span := group.Spans[i]
			fmt.Fprintf(table, "%.1f\t%.1f\t  %s\n", seconds, span.End.Sub(span.Start).Seconds(), span.Name)
		}
		fmt.Fprintln(table)
	}
	total := p.total()
	fmt.Fprint(table, "CPU s\tshare\t  component\n")
	rest := total
	for _, name := range slices.SortedFunc(maps.Keys(p.components), func(a, b string) int {
		return cmp.Or(cmp.Compare(p.components[b], p.components[a]), cmp.Compare(a, b))
	}) {
		if seconds := p.components[name]; seconds > 0 && seconds >= minShare*total {
			rest -= seconds
			fmt.Fprintf(table, "%.1f\t%.1f %%\t  %s\n", seconds, percent(seconds, total), name)
		}
	}
	fmt.Fprintf(table, "%.1f\t%.1f %%\t  everything else\n", rest, percent(rest, total))
	return table.Flush()
}

// percent returns the share of the total in percent, or 0 if the total is 0.
func percent(seconds, total float64) float64 {
	if total == 0 {
		return 0
	}
	return 100 * seconds / total
}

// Group is a table of spans.
type Group struct {
	Title string
	Spans []Span
}
