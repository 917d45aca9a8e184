package progress

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"sync"
	"time"
)

// Results of a phase.
const (
	ResultOK      = "ok"
	ResultFailed  = "failed"
	ResultSkipped = "skipped"
)

// stillRunningInterval is how often a running step prints a line.
const stillRunningInterval = 30 * time.Second

// Phase is one finished step.
type Phase struct {
	Name string `json:"name"` // as given to Step
	// Seconds is the step's wall-clock time, rounded to tenths.
	Seconds float64 `json:"seconds"`
	// Result is ResultOK, ResultFailed or ResultSkipped.
	Result string `json:"result"`
	// Started is when the step began; Detail is the text in brackets on its line.
	Started time.Time `json:"-"`
	Detail  string    `json:"-"`
}

// Recorder prints steps, one Write per line, and keeps them. It is safe for concurrent use.
type Recorder struct {
	mu     sync.Mutex
	w      io.Writer
	phases []Phase
}

// New returns a Recorder that prints to w. It ignores errors of w.
func New(w io.Writer) *Recorder {
	return &Recorder{w: w}
}

// Step runs fn and returns its error unchanged. Every 30 s it prints that the step is still
// running. When fn returns, Step prints a line with a mark, the name, the notes and the seconds,
// and records the phase. Note and Skip find the step in the context of fn. Nested steps are
// indented.
func (r *Recorder) Step(ctx context.Context, name string, fn func(ctx context.Context) error) error {
	s := &step{name: name, depth: depthOf(ctx) + 1}
	start := time.Now()

	stop := r.watch(s, start)
	err := fn(context.WithValue(ctx, contextKey{}, s))
	stop()

	r.finish(s, start, err)
	return err
}

// Phases returns the steps that have ended, in the order in which they ended.
func (r *Recorder) Phases() []Phase {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.phases)
}

// watch prints a line every stillRunningInterval until stop is called.
func (r *Recorder) watch(s *step, start time.Time) (stop func()) {
	done, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		ticker := time.NewTicker(stillRunningInterval)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				r.print(line("…", s.depth, s.name+" still running", s.lastNote(), time.Since(start)))
			}
		}
	}()
	return func() { close(done); <-stopped }
}

func (r *Recorder) finish(s *step, start time.Time, err error) {
	result, mark, detail := s.outcome(err)
	took := time.Since(start)

	r.mu.Lock()
	r.phases = append(r.phases, Phase{
		Name: s.name, Seconds: math.Round(took.Seconds()*10) / 10, Result: result, Started: start, Detail: detail,
	})
	r.mu.Unlock()

	r.print(line(mark, s.depth, s.name, detail, took))
}

func (r *Recorder) print(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, _ = io.WriteString(r.w, text)
}

// line renders one line with only the first line of the detail.
func line(mark string, depth int, name, detail string, took time.Duration) string {
	text := strings.Repeat("  ", depth-1) + " " + mark + " " + name
	if first, _, more := strings.Cut(strings.TrimSpace(detail), "\n"); first != "" {
		if more {
			first += " …"
		}
		text += " (" + first + ")"
	}
	return fmt.Sprintf("%s  %.1fs\n", text, took.Seconds())
}
