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

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/wait"
)

// Results of a phase.
const (
	ResultOK      = "ok"
	ResultFailed  = "failed"
	ResultSkipped = "skipped"
)

// stillRunningInterval is the time between two lines of a running step.
const stillRunningInterval = 30 * time.Second

// Phase is one finished step.
type Phase struct {
	Name    string    `json:"name"`    // as given to Step
	Seconds float64   `json:"seconds"` // wall-clock time, rounded to tenths
	Result  string    `json:"result"`  // ResultOK, ResultFailed or ResultSkipped
	Started time.Time `json:"-"`
	Detail  string    `json:"-"` // the text in brackets on the line of the step
}

// Recorder prints steps, one Write per line, and keeps them. It is safe for concurrent use.
type Recorder struct {
	mu     sync.Mutex
	w      io.Writer
	phases []Phase
}

// New returns a Recorder that prints to w. It ignores errors of w.
func New(w io.Writer) *Recorder { return &Recorder{w: w} }

// Step runs fn and returns its error unchanged. Every 30 s and at the end it prints a line with a
// mark, the name, the notes and the seconds. At the end it records the phase. Steps can be nested.
func (r *Recorder) Step(ctx context.Context, name string, fn func(ctx context.Context) error) error {
	s, start := &step{name: name}, time.Now()
	if outer := stepOf(ctx); outer != nil {
		s.depth = outer.depth + 1
	}
	stop := r.watch(context.WithoutCancel(ctx), s, start)
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

func (r *Recorder) watch(ctx context.Context, s *step, start time.Time) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(func() {
		_ = wait.PollUntilContextCancel(ctx, stillRunningInterval, false, func(context.Context) (bool, error) {
			r.print(line("…", s.depth, s.name+" still running", s.lastNote(), time.Since(start)))
			return false, nil
		})
	})
	return func() { cancel(); watching.Wait() }
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
	text := strings.Repeat("  ", depth) + " " + mark + " " + name
	if first, _, more := strings.Cut(strings.TrimSpace(detail), "\n"); first != "" {
		if more {
			first += " …"
		}
		text += " (" + first + ")"
	}
	return fmt.Sprintf("%s  %.1fs\n", text, took.Seconds())
}

type contextKey struct{}

type step struct {
	name  string
	depth int // the number of steps around it

	mu      sync.Mutex
	notes   []string
	skipped bool
}

// Note adds a detail to the line of the step in ctx, if there is one. A repeated detail appears
// once.
func Note(ctx context.Context, format string, args ...any) {
	stepOf(ctx).note(fmt.Sprintf(format, args...), false)
}

// Skip marks the step in ctx, if there is one, as skipped, with a reason. Errors take precedence.
func Skip(ctx context.Context, format string, args ...any) {
	stepOf(ctx).note(fmt.Sprintf(format, args...), true)
}

func stepOf(ctx context.Context) *step {
	s, _ := ctx.Value(contextKey{}).(*step)
	return s
}

func (s *step) note(text string, skip bool) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.skipped = s.skipped || skip
	if !slices.Contains(s.notes, text) {
		s.notes = append(s.notes, text)
	}
}

func (s *step) lastNote() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.notes) == 0 {
		return ""
	}
	return s.notes[len(s.notes)-1]
}

// outcome returns the result of the step, and the mark and the detail for its line.
func (s *step) outcome(err error) (result, mark, detail string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err != nil:
		return ResultFailed, "✗", err.Error()
	case s.skipped:
		return ResultSkipped, "-", strings.Join(s.notes, ", ")
	default:
		return ResultOK, "✓", strings.Join(s.notes, ", ")
	}
}

// Within returns a context that ends after the timeout, with a cause: "<what> after <timeout>".
func Within(ctx context.Context, timeout time.Duration, what string) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, timeout, fmt.Errorf("%s after %s", what, timeout))
}

// InOrder runs the parts one after another until one fails.
func InOrder(ctx context.Context, parts ...func(context.Context) error) error {
	for _, part := range parts {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return nil
}

// AtOnce runs the parts concurrently. The first error cancels the others and is returned.
func AtOnce(ctx context.Context, parts ...func(context.Context) error) error {
	return ForEach(ctx, parts, func(ctx context.Context, part func(context.Context) error) error { return part(ctx) })
}

// ForEach calls part(ctx, item) for all items concurrently. The first error cancels the other calls
// and is returned.
func ForEach[T any](ctx context.Context, items []T, part func(context.Context, T) error) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, item := range items {
		group.Go(func() error { return part(ctx, item) })
	}
	return group.Wait()
}
