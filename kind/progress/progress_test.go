package progress_test

import (
	"bytes"
	"context"
	"errors"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gardener-extensions/registry-cache/kind/progress"
)

// work returns a step that takes d. Inside a synctest bubble no real time passes.
func work(d time.Duration, err error, notes ...string) func(context.Context) error {
	return func(ctx context.Context) error {
		for _, note := range notes {
			progress.Note(ctx, "%s", note)
		}
		<-time.After(d)
		return err
	}
}

func TestStepPrintsAndRecords(t *testing.T) {
	failure := errors.New("no space left\nsecond line")
	tests := []struct {
		name   string
		run    func(ctx context.Context) error
		err    error
		output string
		result string
	}{
		{"ok", work(12340*time.Millisecond, nil), nil, " ✓ step  12.3s\n", "ok"},
		{"notes are joined, equal ones shown once", work(0, nil, "a", "b", "a"), nil, " ✓ step (a, b)  0.0s\n", "ok"},
		{"failed", work(time.Second, failure, "a"), failure, " ✗ step (no space left …)  1.0s\n", "failed"},
		{"skipped", func(ctx context.Context) error { progress.Skip(ctx, "present"); return nil }, nil,
			" - step (present)  0.0s\n", "skipped"},
		{"long ones say that they are alive", work(61*time.Second, nil, "a", "b"), nil,
			" … step still running (b)  30.0s\n … step still running (b)  60.0s\n ✓ step (a, b)  61.0s\n", "ok"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out bytes.Buffer
				r := progress.New(&out)
				if err := r.Step(t.Context(), "step", tc.run); !errors.Is(err, tc.err) {
					t.Errorf("error is %v, want %v", err, tc.err)
				}
				if out.String() != tc.output {
					t.Errorf("printed\n%q, want\n%q", out.String(), tc.output)
				}
				if got := r.Phases(); len(got) != 1 || got[0].Result != tc.result {
					t.Errorf("phases are %+v, want one with result %q", got, tc.result)
				}
			})
		})
	}
}

func TestStepsNest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		r, start := progress.New(&out), time.Now()
		err := r.Step(t.Context(), "outer", func(ctx context.Context) error {
			return r.Step(ctx, "inner", work(time.Second, nil, "detail"))
		})
		if err != nil {
			t.Fatal(err)
		}
		if want := "   ✓ inner (detail)  1.0s\n ✓ outer  1.0s\n"; out.String() != want {
			t.Errorf("printed %q, want %q", out.String(), want)
		}
		want := []progress.Phase{
			{Name: "inner", Seconds: 1, Result: "ok", Started: start, Detail: "detail"},
			{Name: "outer", Seconds: 1, Result: "ok", Started: start},
		}
		if got := r.Phases(); !reflect.DeepEqual(got, want) {
			t.Errorf("phases are %+v, want %+v", got, want)
		}
	})
}

func TestConcurrentStepsKeepLinesWhole(t *testing.T) {
	var out bytes.Buffer
	r := progress.New(&out)
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() { _ = r.Step(t.Context(), "step", work(0, nil, "note")) })
	}
	wg.Wait()
	if got := strings.Count(out.String(), " ✓ step (note)  0.0s\n"); got != 50 {
		t.Errorf("%d whole lines, want 50", got)
	}
	if got := len(r.Phases()); got != 50 {
		t.Errorf("%d phases, want 50", got)
	}
}

func TestNoteOutsideOfAStep(t *testing.T) {
	progress.Note(t.Context(), "goes %s", "nowhere")
	progress.Skip(t.Context(), "goes nowhere")
}
