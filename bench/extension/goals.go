package extension

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gardener-extensions/registry-cache/bench"
)

// The goals of docs/operations.md.
const (
	maxRequests     = 15
	maxMemory       = 256 << 20
	memoryShoots    = 1000
	maxWebhook      = 0.010 // seconds
	flatFrom        = 100
	flatTo          = 3000
	maxFlatGrowth   = 1.5 // factor of the cost per Extension
	maxBrokenGrowth = 1.5 // factor of the time per Extension, without the broken shoots
)

// contractWrites are the writes of Gardener's extension library in every reconciliation. The
// library removes the operation annotation, and updates the status at the start and at the end.
var contractWrites = map[string]float64{"patch extensions": 1, "patch extensions/status": 2}

// Judge returns all goals. A goal that applies to every run is met only if every run meets it.
func Judge(runs []Run) []bench.Goal {
	return []bench.Goal{
		eachRun("a reconciliation without a change writes only what the contract requires", runs, func(r Run) (bool, string) {
			extra := extraWrites(r.NoOp)
			return extra == "", extra
		}),
		eachRun(fmt.Sprintf("at most %d requests per first reconciliation", maxRequests), runs, func(r Run) (bool, string) {
			total := r.First.Seed.Total() + r.First.Shoot.Total()
			return total <= maxRequests, fmt.Sprintf("%.1f", total)
		}),
		memory(runs),
		flat(runs),
		eachRun(fmt.Sprintf("webhook p99 at most %.0f ms", maxWebhook*1000), runs, func(r Run) (bool, string) {
			worst := max(r.Webhook.P99, r.WebhookBroken.P99)
			failed := r.Webhook.Failed + r.WebhookBroken.Failed
			detail := fmt.Sprintf("%.1f ms", worst*1000)
			if failed > 0 {
				detail += fmt.Sprintf(", %d failed", failed)
			}
			return worst <= maxWebhook && failed == 0, detail
		}),
		eachRun("two unreachable shoot API servers delay no other shoot", runs, func(r Run) (bool, string) {
			growth := ratio(perExtension(r.Broken).seconds, perExtension(r.NoOp).seconds)
			return growth <= maxBrokenGrowth, fmt.Sprintf("×%.2f", growth)
		}),
		eachRun("no request is forbidden", runs, func(r Run) (bool, string) {
			kinds := strings.Join(slices.Sorted(maps.Keys(r.Forbidden)), ", ")
			return kinds == "", kinds
		}),
	}
}

func eachRun(name string, runs []Run, judge func(Run) (held bool, detail string)) bench.Goal {
	goal := bench.Goal{Name: name}
	for _, run := range runs {
		held, detail := judge(run)
		goal.Judge(held, fmt.Sprintf("%d: %s", run.Shoots, cmp.Or(detail, "none")))
	}
	return goal
}

func extraWrites(p Pass) string {
	var extra []string
	for _, requests := range []Requests{p.Seed, p.Shoot} {
		for _, kind := range slices.Sorted(maps.Keys(requests.Kinds)) {
			verb, _, _ := strings.Cut(kind, " ")
			if count := requests.Kinds[kind]; count > contractWrites[kind] && !bench.IsRead(verb) {
				extra = append(extra, fmt.Sprintf("%.2f × %s", count, kind))
			}
		}
	}
	return strings.Join(extra, ", ")
}

func memory(runs []Run) bench.Goal {
	goal := bench.Goal{Name: fmt.Sprintf("at most %d MiB at %d shoots", maxMemory>>20, memoryShoots)}
	if run, ok := find(runs, memoryShoots); ok {
		goal.Judge(run.Memory.Peak <= maxMemory,
			fmt.Sprintf("%.0f MiB at most, %.0f MiB steady", mebibytes(run.Memory.Peak), mebibytes(run.Memory.Steady)))
	}
	return goal
}

func flat(runs []Run) bench.Goal {
	goal := bench.Goal{Name: fmt.Sprintf("cost per Extension flat from %d to %d shoots", flatFrom, flatTo)}
	from, okFrom := find(runs, flatFrom)
	to, okTo := find(runs, flatTo)
	if !okFrom || !okTo {
		return goal
	}
	for _, pass := range []struct {
		name     string
		from, to Pass
	}{{"first", from.First, to.First}, {"no change", from.NoOp, to.NoOp}} {
		was, is := perExtension(pass.from), perExtension(pass.to)
		for _, cost := range []struct {
			name   string
			growth float64
		}{
			{"seconds", ratio(is.seconds, was.seconds)}, {"CPU", ratio(is.cpu, was.cpu)}, {"requests", ratio(is.requests, was.requests)},
		} {
			goal.Judge(cost.growth <= maxFlatGrowth, fmt.Sprintf("%s %s ×%.2f", pass.name, cost.name, cost.growth))
		}
	}
	return goal
}

func find(runs []Run, shoots int) (Run, bool) {
	i := slices.IndexFunc(runs, func(r Run) bool { return r.Shoots == shoots })
	if i < 0 {
		return Run{}, false
	}
	return runs[i], true
}

type cost struct{ seconds, cpu, requests float64 }

func perExtension(p Pass) cost {
	n := float64(max(1, p.Extensions))
	return cost{seconds: p.Seconds / n, cpu: p.CPUSeconds / n, requests: p.Seed.Total() + p.Shoot.Total()}
}

// ratio returns the ratio of the later to the earlier value, or 1 if the earlier value is 0.
func ratio(is, was float64) float64 {
	if was == 0 {
		return 1
	}
	return is / was
}

func mebibytes(bytes uint64) float64 { return float64(bytes) / (1 << 20) }
