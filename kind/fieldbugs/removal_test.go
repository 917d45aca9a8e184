package fieldbugs

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// TestPullWhile checks the duration of the slowest pull, that a failed pull is an unmet claim, and
// that pullWhile waits until the function do returns.
func TestPullWhile(t *testing.T) {
	const report = `{"pulls": [{"node": "worker2"ERROR}], "total": {"pulls": 1, "failed": FAILED, "slowestSeconds": SECONDS}}`
	broken := errors.New("the Shoot is not reconciled")
	for name, test := range map[string]struct {
		fails int // the number of the pull that fails, or 0
		do    error
		want  float64
		unmet bool
	}{
		"all succeed": {0, nil, 4, false},
		"one fails":   {2, nil, 4, true},
		"do fails":    {0, broken, 4, false},
	} {
		t.Run(name, func(t *testing.T) {
			pulls, ended := 0, false
			enough := make(chan struct{})
			r := rigOf(func(line string) string {
				if strings.HasPrefix(line, "push") {
					return `{"reference": "alpha.upstream.test/testbed/a:latest"}`
				}
				if line != "pull alpha.upstream.test/testbed/a:latest --all --json" {
					t.Error(line)
				}
				pulls++
				if pulls == 2 {
					close(enough)
				}
				failed, cause, seconds := "0", "", "1"
				if pulls == test.fails {
					failed, cause = "1", `, "error": "no"`
				}
				if pulls == 1 {
					seconds = "4"
				}
				return strings.NewReplacer("FAILED", failed, "ERROR", cause, "SECONDS", seconds).Replace(report)
			})
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			slowest, err := r.pullWhile(ctx, []string{"--all"}, func(ctx context.Context) error {
				select {
				case <-enough:
					ended = true
				case <-ctx.Done():
				}
				return test.do
			})
			var unmet *Unmet
			if errors.As(err, &unmet) != test.unmet || (err != nil) != (test.unmet || test.do != nil) || test.do != nil && !errors.Is(err, test.do) {
				t.Errorf("%v", err)
			}
			if slowest.Seconds() != test.want || !ended || pulls < 2 {
				t.Errorf("the slowest of %d pulls took %s; do has ended: %t", pulls, slowest, ended)
			}
			if len(r.script.lines) > 0 {
				t.Errorf("background pulls must not be recorded: %q", r.script.commands())
			}
		})
	}
}
