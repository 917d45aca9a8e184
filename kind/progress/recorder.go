package progress

import (
	"context"
	"fmt"
	"io"
	"math"
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

// stillRunningInterval is how long a step may stay silent before a line says that it is alive.
const stillRunningInterval = 30 * time.Second

// Phase is one finished step.
type Phase struct {
	// Name is the name that was given to Step.
	Name string `json:"name"`
	// Seconds is the wall-clock time that the step took, rounded to tenths.
	Seconds float64 `json:"seconds"`
	// Result is ResultOK, ResultFailed or ResultSkipped.
	Result string `json:"result"`
	// Started is when the step began; Detail is the text in brackets on its line.
	Started time.Time `json:"-"`
	Detail  string    `json:"-"`
}

// Recorder prints steps to a writer and keeps them. It is safe for concurrent use; each line is written by one Write.
type Recorder struct {
	mu     sync.Mutex
	w      io.Writer
	phases []Phase
}

// New returns a Recorder that prints to w. Errors of w are ignored: progress never fails the work it reports on.
func New(w io.Writer) *Recorder {
	return &Recorder{w: w}
}

// Step runs fn and returns its error unchanged. When fn returns, one line with a mark, the name, the notes and the
// seconds is printed and the phase is recorded, in the order in which steps end. While fn runs, a line each 30 s says
// so. fn's context carries the step for Note and Skip; steps may be nested, inner ones are printed indented.
func (r *Recorder) Step(ctx context.Context, name string, fn func(ctx context.Context) error) error {
	s := &step{name: name, depth: depthOf(ctx) + 1}
	start := time.Now()

	stop := r.watch(s, start)
	err := fn(context.WithValue(ctx, contextKey{}, s))
	stop()

	r.finish(s, start, err)
	return err
}

// Phases returns the steps that have ended so far, in the order in which they ended.
func (r *Recorder) Phases() []Phase {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Phase(nil), r.phases...)
}

// watch prints a line each stillRunningInterval until the returned function is called, which waits for the last one.
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

// line renders one line; only the first line of a detail is shown.
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
