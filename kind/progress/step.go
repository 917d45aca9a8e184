package progress

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
)

type contextKey struct{}

// step is a running step, which Note and Skip add to.
type step struct {
	name  string
	depth int

	mu      sync.Mutex
	notes   []string
	skipped bool
}

// Note adds a detail to the line of the step in ctx, if there is one. Repeated details show once.
func Note(ctx context.Context, format string, args ...any) {
	if s := stepOf(ctx); s != nil {
		s.note(fmt.Sprintf(format, args...), false)
	}
}

// Skip marks the step in ctx, if there is one, as skipped for the given reason unless it fails.
func Skip(ctx context.Context, format string, args ...any) {
	if s := stepOf(ctx); s != nil {
		s.note(fmt.Sprintf(format, args...), true)
	}
}

func stepOf(ctx context.Context) *step {
	s, _ := ctx.Value(contextKey{}).(*step)
	return s
}

func depthOf(ctx context.Context) int {
	if s := stepOf(ctx); s != nil {
		return s.depth
	}
	return 0
}

func (s *step) note(text string, skip bool) {
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
