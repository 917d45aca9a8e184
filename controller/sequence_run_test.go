package controller

import (
	"flag"
	"fmt"
	"maps"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
)

var (
	seqSequences = flag.Int("sequences", 100, "how many sequences TestSequences runs")
	seqSeed      = flag.Uint64("seed", 1, "the seed of the first sequence of TestSequences")
	seqShrinks   = flag.Int("shrink", 2, "how many failures of a kind TestSequences makes small")
)

// seqRun runs a sequence in virtual time, and returns its first fault, or "".
func seqRun(t *testing.T, events []seqEvent) (fault string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		defer func() {
			if reason := recover(); reason != nil {
				fault = fmt.Sprint(reason)
				if _, known := reason.(seqFault); !known {
					fault = "panic: " + fault
				}
			}
		}()
		s := newSeqWorld(t)
		for _, e := range events {
			s.happen(e)
			if s.deleting {
				break
			}
		}
		s.settle()
	})
	return fault
}

// settle ends all faults, rolls out the wish, and compares the result.
func (s *seqWorld) settle() {
	s.at, s.noCleaner, s.guarded, s.lag = 0, "", false, 0
	s.catchUpNow()
	s.resyncAll()
	if !s.deleting {
		if !s.restored {
			s.roll("roll")
		}
		s.wish.mistake, s.wish.asleep = "", false
		s.wish.caches = maps.Clone(s.wish.caches)
		for upstream, c := range s.wish.caches {
			if s.foreign == "registry-"+c.suffix {
				c.suffix = ""
				s.wish.caches[upstream] = c
			}
		}
		for range 3 {
			s.roll("roll")
			s.resyncAll()
			<-time.After(previousFor)
		}
	}
	if s.forced {
		return
	}
	s.must(s.runShoot(s.t.Context()))
	s.collect()
	if difference := s.compare(); difference != "" {
		s.fail("%s", difference)
	}
	for uid, name := range s.claims() {
		if s.dropped[uid] != "" {
			s.fail("kept claim: %s of a cache that was removed", name)
		}
	}
}

// resyncAll acts as gardener-resource-manager, which resyncs each hour, and retries failures.
func (s *seqWorld) resyncAll() {
	mrs := &resourcesv1alpha1.ManagedResourceList{}
	s.must(s.unwatched.List(s.t.Context(), mrs))
	for _, mr := range mrs.Items {
		if !s.ignores(s.t.Context(), mr.Name) {
			_ = s.manage(s.t.Context(), mr.Name)
		}
	}
}

// TestSequences runs random sequences of events against a model of what must exist in the end. A
// failure is shrunk and printed as a Go literal, for TestSequenceCases.
func TestSequences(t *testing.T) {
	var next, ran atomic.Int64
	var mu sync.Mutex
	failed, known := map[string]int{}, map[string]bool{}
	t.Run("sequences", func(t *testing.T) {
		for worker := range runtime.GOMAXPROCS(0) {
			t.Run(fmt.Sprintf("worker %d", worker), func(t *testing.T) {
				t.Parallel()
				for {
					i := next.Add(1) - 1
					if i >= int64(*seqSequences) {
						return
					}
					seed := *seqSeed + uint64(i)
					events := seqRandom(seed)
					fault := seqRun(t, events)
					ran.Add(1)
					if fault == "" {
						continue
					}
					kind := seqKind(fault)
					mu.Lock()
					failed[kind]++
					enough := failed[kind] > *seqShrinks
					mu.Unlock()
					if enough {
						continue
					}
					events, fault = seqShrink(t, events, fault)
					mu.Lock()
					if text := kind + fmt.Sprint(events); !known[text] {
						known[text] = true
						t.Errorf("%.900s (seed %d)\n\t%s", fault, seed, seqLiteral(events))
					}
					mu.Unlock()
				}
			})
		}
	})
	kinds := []string{}
	for kind, n := range failed {
		kinds = append(kinds, fmt.Sprintf("%d %s", n, kind))
	}
	slices.Sort(kinds)
	t.Logf("%d sequences, failures: %s", ran.Load(), strings.Join(kinds, ", "))
}

// seqKind returns the kind of a fault: its text before the first colon, or an error without names.
func seqKind(fault string) string {
	if strings.Contains(fault, " fails") {
		return seqName.ReplaceAllString(fault[:min(len(fault), 150)], "")
	}
	kind, _, _ := strings.Cut(fault, ":")
	return kind
}

var seqName = regexp.MustCompile("alpha|beta|gamma|[0-9]+")

// seqShrink returns a smaller sequence that fails in the same way, and its fault.
func seqShrink(t *testing.T, events []seqEvent, fault string) ([]seqEvent, string) {
	t.Helper()
	kind := seqKind(fault)
	fails := func(smaller []seqEvent) bool {
		again := seqRun(t, smaller)
		if seqKind(again) != kind {
			return false
		}
		events, fault = smaller, again
		return true
	}
	for again := true; again; {
		again = false
		for i := len(events) - 1; i >= 0; i-- {
			if i < len(events) && fails(slices.Delete(slices.Clone(events), i, i+1)) {
				again = true
			}
		}
	}
	for i, e := range events {
		for at := 1; e.Do == "break" && at < e.At; at++ {
			smaller := slices.Clone(events)
			smaller[i].At = at
			if fails(smaller) {
				break
			}
		}
	}
	return events, fault
}

// seqLiteral returns the sequence as a case for TestSequenceCases.
func seqLiteral(events []seqEvent) string {
	var parts []string
	for _, e := range events {
		part := fmt.Sprintf("{Do: %q", e.Do)
		for upstream, name := range map[string]string{alpha: "alpha", beta: "beta", gamma: "gamma"} {
			if e.On == upstream {
				part += ", On: " + name
			}
		}
		if e.To != "" {
			part += fmt.Sprintf(", To: %q", e.To)
		}
		if e.At != 0 {
			part += fmt.Sprintf(", At: %d", e.At)
		}
		parts = append(parts, part+"}")
	}
	return `"": {` + strings.Join(parts, ", ") + "},"
}

// TestSequenceCases runs failures of TestSequences that were fixed.
func TestSequenceCases(t *testing.T) {
	for name, events := range seqCases {
		t.Run(name, func(t *testing.T) {
			if fault := seqRun(t, events); fault != "" {
				t.Errorf("%.900s\n\t%s", fault, seqLiteral(events))
			}
		})
	}
}

var seqCases = map[string][]seqEvent{
	"all that works": {
		{Do: "roll"}, {Do: "remove", On: beta}, {Do: "roll"}, {Do: "hibernate"}, {Do: "roll"}, {Do: "wake"}, {Do: "roll"},
		{Do: "disable"}, {Do: "roll"}, {Do: "enable"}, {Do: "roll"}, {Do: "delete"},
	},
	"a mistake does not keep a Shoot awake": {{Do: "roll"}, {Do: "err", To: "reference"}, {Do: "hibernate"}, {Do: "roll"}},
	"a pending removal moves":               {{Do: "roll"}, {Do: "remove", On: beta}, {Do: "migrate"}},
	"a pending end of availability moves":   {{Do: "replicate", On: beta}, {Do: "roll"}, {Do: "replicate", On: beta}, {Do: "migrate"}},
	"the Service before a rename moves":     {{Do: "roll"}, {Do: "rename", On: beta, To: "one"}, {Do: "roll"}, {Do: "migrate"}},
	"a mistake moves":                       {{Do: "roll"}, {Do: "err", To: "reference"}, {Do: "migrate"}},
	"a pending replacement moves":           {{Do: "roll"}, {Do: "replace", On: alpha, To: "other"}, {Do: "migrate"}},
	"replaced by two updates":               {{Do: "roll"}, {Do: "replace", On: beta, To: "other"}},
	"removed and added in hibernation": {
		{Do: "roll"}, {Do: "hibernate"}, {Do: "roll"}, {Do: "remove", On: beta}, {Do: "roll"}, {Do: "add", On: beta, To: "other"}, {Do: "roll"},
	},
	"removed and added while a policy guards claims": {
		{Do: "roll"}, {Do: "guard"}, {Do: "remove", On: beta}, {Do: "roll"}, {Do: "add", On: beta, To: "other"}, {Do: "roll"},
	},
	"a policy guards the claim of a replica": {{Do: "replicate", On: beta}, {Do: "roll"}, {Do: "guard"}, {Do: "replicate", On: beta}, {Do: "roll"}},
	"a Secret of an earlier cleaner": {
		{Do: "roll"}, {Do: "remove", On: beta}, {Do: "break", To: "crash", At: 3}, {Do: "short"}, {Do: "add", On: beta}, {Do: "roll"},
		{Do: "wait"}, {Do: "lag", At: 4}, {Do: "remove", On: beta}, {Do: "roll"},
	},
	"a Secret of an interrupted cleaner": {
		{Do: "roll"}, {Do: "remove", On: beta}, {Do: "break", To: "crash", At: 3}, {Do: "short"}, {Do: "lag", At: 1}, {Do: "wait"}, {Do: "roll"},
	},
	"a rename, and a restoration with a mistake": {{Do: "roll"}, {Do: "rename", On: beta, To: "one"}, {Do: "roll"}, {Do: "err", To: "empty"}, {Do: "migrate"}},
	"a mistake before the first rollout":         {{Do: "err", To: "url"}, {Do: "roll"}, {Do: "migrate"}},
	"a migration in hibernation, and then disabled": {
		{Do: "roll"}, {Do: "hibernate"}, {Do: "roll"}, {Do: "migrate"}, {Do: "disable"}, {Do: "roll"},
	},
	"removed, migrated and disabled in hibernation": {
		{Do: "rename", On: beta, To: "one"}, {Do: "replicate", On: alpha}, {Do: "roll"}, {Do: "hibernate"}, {Do: "roll"}, {Do: "remove", On: beta}, {Do: "roll"},
		{Do: "migrate"}, {Do: "disable"}, {Do: "roll"},
	},
	"a migration in hibernation with a mistake, and then disabled": {
		{Do: "roll"}, {Do: "hibernate"}, {Do: "roll"}, {Do: "err", To: "reference"}, {Do: "migrate"}, {Do: "disable"}, {Do: "roll"},
	},
	"migrated and removed in hibernation, and then disabled": {
		{Do: "roll"}, {Do: "hibernate"}, {Do: "roll"}, {Do: "migrate"}, {Do: "remove", On: beta}, {Do: "roll"}, {Do: "disable"}, {Do: "roll"},
	},
	"migrated and replaced in hibernation, and then disabled": {
		{Do: "roll"}, {Do: "hibernate"}, {Do: "roll"}, {Do: "migrate"}, {Do: "replace", On: beta, To: "other"}, {Do: "roll"}, {Do: "disable"}, {Do: "roll"},
	},
	"removed between migrations in hibernation, and then disabled": {
		{Do: "roll"}, {Do: "hibernate"}, {Do: "roll"}, {Do: "migrate"}, {Do: "migrate"}, {Do: "remove", On: beta}, {Do: "roll"}, {Do: "migrate"},
		{Do: "disable"}, {Do: "roll"},
	},
	"added, migrated and removed in hibernation, and then disabled for a while": {
		{Do: "roll"}, {Do: "hibernate"}, {Do: "roll"}, {Do: "add", On: gamma}, {Do: "roll"}, {Do: "migrate"}, {Do: "remove", On: gamma}, {Do: "roll"},
		{Do: "disable"}, {Do: "short"}, {Do: "enable"}, {Do: "wake"}, {Do: "roll"},
	},
	"a cleaner that is blocked, and then a claim that is guarded": {
		{Do: "lag", At: 1}, {Do: "block"}, {Do: "replace", On: alpha, To: "other"}, {Do: "roll"}, {Do: "guard"}, {Do: "replace", On: alpha}, {Do: "late"},
	},
	"interrupted before the first cache is recorded, and then replaced": {
		{Do: "replace", On: alpha, To: "other"}, {Do: "break", To: "crash", At: 5}, {Do: "short"}, {Do: "replace", On: alpha},
	},
	"interrupted before a new cache is recorded, and then removed with a guarded claim": {
		{Do: "remove", On: alpha}, {Do: "roll"}, {Do: "add", On: alpha, To: "other"}, {Do: "break", To: "crash", At: 5}, {Do: "short"},
		{Do: "guard"}, {Do: "remove", On: alpha}, {Do: "roll"}, {Do: "add", On: alpha},
	},
	"availability that was interrupted, and its end moves": {
		{Do: "roll"}, {Do: "replicate", On: beta}, {Do: "break", To: "lost", At: 2}, {Do: "short"}, {Do: "replicate", On: beta}, {Do: "migrate"},
	},
	"availability that was interrupted, and its end moves with a mistake": {
		{Do: "roll"}, {Do: "replicate", On: beta}, {Do: "break", To: "lost", At: 2}, {Do: "short"}, {Do: "replicate", On: beta},
		{Do: "err", To: "reference"}, {Do: "migrate"},
	},
	"a removal with a mistake moves, and is reverted": {
		{Do: "roll"}, {Do: "err", To: "url"}, {Do: "remove", On: beta}, {Do: "migrate"}, {Do: "add", On: beta},
	},
	"a Service of the owner with the name of one that is being deleted": {
		{Do: "lag", At: 4}, {Do: "rename", On: beta, To: "one"}, {Do: "roll"}, {Do: "replace", On: beta, To: "other"}, {Do: "short"}, {Do: "foreign", To: "one"},
	},
	"a Service is not ours":                      {{Do: "rename", On: alpha, To: "one"}, {Do: "foreign", To: "one"}, {Do: "roll"}},
	"a rename that the nodes do not know of yet": {{Do: "roll"}, {Do: "rename", On: beta, To: "one"}, {Do: "late"}, {Do: "roll"}},
}
