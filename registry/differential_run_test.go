package registry

import (
	"cmp"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

var (
	diffSchedules = flag.Int("schedules", 400, "how many schedules TestDifferential runs")
	diffSeed      = flag.Uint64("seed", 1, "the seed of the first schedule of TestDifferential")
	diffShrinks   = flag.Int("shrink", 10, "how many failures of a kind TestDifferential makes small")
)

// diffRun runs a schedule in virtual time, and returns its first fault, or "".
func diffRun(t *testing.T, s diffSchedule) (fault string) {
	t.Helper()
	dir, err := os.MkdirTemp(diffDir(), "differential") //nolint:usetesting // thousands, in memory
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	defer func() {
		if reason := recover(); reason != nil { // in the bubble, all goroutines are blocked
			fault = cmp.Or(fault, fmt.Sprintf("goroutines: %v", reason))
		}
	}()
	now := time.Now()
	synctest.Test(t, func(*testing.T) {
		defer func() {
			if reason := recover(); reason != nil {
				fault = fmt.Sprintf("panic: %v", reason)
			}
		}()
		diffSleep(time.Until(now)) // the bubble begins in 2000, but files have the time of the host
		w, err := newDiffWorld(s, dir)
		defer w.close()
		if err != nil {
			fault = fmt.Sprintf("start: %v", err)
			return
		}
		w.run()
		if len(w.faults) > 0 {
			fault = w.faults[0]
		}
	})
	return fault
}

// diffSleep sleeps in virtual time.
func diffSleep(d time.Duration) { <-time.After(d) }

// diffDir returns a folder for volumes, in memory if possible.
func diffDir() string {
	const memory = "/dev/shm"
	if info, err := os.Stat(memory); err == nil && info.IsDir() {
		return memory
	}
	return ""
}

func diffQuiet(t *testing.T) {
	t.Helper()
	before := slog.Default()
	slog.SetDefault(slog.New(slog.DiscardHandler))
	t.Cleanup(func() { slog.SetDefault(before) })
}

// TestDifferential compares containerd's client with and without the cache in front of an upstream,
// on random upstreams, contents and events. A failure is shrunk and printed as a Go literal, for
// TestDifferentialCases.
func TestDifferential(t *testing.T) {
	diffQuiet(t)
	var next, ran atomic.Int64
	found := &diffFound{count: map[string]int{}, known: map[string]bool{}}
	t.Run("schedules", func(t *testing.T) {
		for worker := range runtime.GOMAXPROCS(0) {
			t.Run(fmt.Sprintf("worker %d", worker), func(t *testing.T) {
				t.Parallel()
				for {
					i := next.Add(1) - 1
					if i >= int64(*diffSchedules) {
						return
					}
					seed := *diffSeed + uint64(i)
					s := diffRandom(seed)
					if fault := diffRun(t, s); fault != "" {
						found.add(t, seed, s, fault)
					}
					ran.Add(1)
				}
			})
		}
	})
	t.Logf("%d schedules, %d failed", ran.Load(), found.failed)
	found.report(t)
}

// diffFound collects failures by kind.
type diffFound struct {
	mu     sync.Mutex
	failed int
	count  map[string]int
	known  map[string]bool // by kind and outline
}

// diffWhat returns the kind of a fault: its text before the first colon.
func diffWhat(fault string) string { what, _, _ := strings.Cut(fault, ":"); return what }

func (f *diffFound) add(t *testing.T, seed uint64, s diffSchedule, fault string) {
	t.Helper()
	what := diffWhat(fault)
	f.mu.Lock()
	f.failed++
	f.count[what]++
	enough := f.count[what] > *diffShrinks
	f.mu.Unlock()
	if enough {
		return
	}
	s = diffShrink(s, func(smaller diffSchedule) bool { return diffWhat(diffRun(t, smaller)) == what })
	if again := diffRun(t, s); again != "" {
		fault = again
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if key := what + s.outline(); !f.known[key] {
		f.known[key] = true
		t.Errorf("%.600s (seed %d)\n\t%s", fault, seed, s)
	}
}

func (f *diffFound) report(t *testing.T) {
	t.Helper()
	if f.failed == 0 {
		return
	}
	kinds := []string{}
	for what, n := range f.count {
		kinds = append(kinds, fmt.Sprintf("%s %d", what, n))
	}
	slices.Sort(kinds)
	t.Errorf("kinds: %s", strings.Join(kinds, ", "))
}

// TestDifferentialCases runs failures of TestDifferential that were fixed, and behaviors of known
// registries.
func TestDifferentialCases(t *testing.T) {
	diffQuiet(t)
	for name, s := range diffCases {
		t.Run(name, func(t *testing.T) {
			if fault := diffRun(t, s); fault != "" {
				t.Errorf("%.900s\n\t%s", fault, s)
			}
		})
	}
}
