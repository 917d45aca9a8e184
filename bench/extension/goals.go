package extension

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gardener-extensions/registry-cache/bench"
)

// maxGrowth is the largest factor by which a cost per Extension may grow.
const maxGrowth = 1.5

// contractWrites are the writes of Gardener's extension library in every reconciliation. The
// library removes the operation annotation, and updates the status at the start and at the end.
var contractWrites = map[string]float64{"seed: patch extensions": 1, "seed: patch extensions/status": 2}

// judge returns all goals, those of docs/operations.md. A goal is held only if every run to which
// it applies meets it.
func judge(runs []Run) []bench.Goal {
	return []bench.Goal{
		eachRun("a reconciliation without a change writes only what the contract requires", runs, func(r Run) (bool, string) {
			extra := extraWrites(r.NoOp)
			return extra == "", extra
		}),
		eachRun("at most 15 requests per first reconciliation", runs, func(r Run) (bool, string) {
			return r.First.total() <= 15, fmt.Sprintf("%.1f", r.First.total())
		}),
		eachRun("at most 256 MiB at 1000 shoots", with(runs, 1000), func(r Run) (bool, string) {
			return mebibytes(r.Peak) <= 256, fmt.Sprintf("%.0f MiB", mebibytes(r.Peak))
		}),
		flat(runs, 100, 3000),
		eachRun("webhook p99 at most 10 ms", runs, func(r Run) (bool, string) {
			worst, failed := 1000*max(r.Webhook.P99, r.WebhookBroken.P99), r.Webhook.Failed+r.WebhookBroken.Failed
			return worst <= 10 && failed == 0, fmt.Sprintf("%.1f ms, %d failed", worst, failed)
		}),
		eachRun("two unreachable shoot API servers delay no other shoot", runs, func(r Run) (bool, string) {
			growth := ratio(r.Broken.Seconds, r.NoOp.Seconds)
			return growth <= maxGrowth, fmt.Sprintf("×%.2f", growth)
		}),
		eachRun("no request is forbidden", runs, func(r Run) (bool, string) {
			return len(r.Forbidden) == 0, strings.Join(slices.Sorted(maps.Keys(r.Forbidden)), ", ")
		}),
	}
}

func eachRun(name string, runs []Run, judge func(Run) (held bool, detail string)) bench.Goal {
	goal := bench.Goal{Name: name}
	for _, run := range runs {
		held, detail := judge(run)
		goal.Judge(held, run.name()+": "+cmp.Or(detail, "none"))
	}
	return goal
}

// with returns the runs with this number of shoots, one for each binary.
func with(runs []Run, shoots int) []Run {
	return slices.DeleteFunc(slices.Clone(runs), func(r Run) bool { return r.Shoots != shoots })
}

func extraWrites(p Pass) string {
	var extra []string
	for _, request := range slices.Sorted(maps.Keys(p.Requests)) {
		verb := strings.Fields(request)[1]
		if count := p.Requests[request]; count > contractWrites[request] && !slices.Contains([]string{"get", "list", "watch"}, verb) {
			extra = append(extra, fmt.Sprintf("%.2f × %s", count, request))
		}
	}
	return strings.Join(extra, ", ")
}

// flat judges how the costs of each binary grow between two numbers of shoots.
func flat(runs []Run, few, many int) bench.Goal {
	goal := bench.Goal{Name: fmt.Sprintf("cost per Extension flat from %d to %d shoots", few, many)}
	for _, from := range with(runs, few) {
		for _, to := range with(runs, many) {
			for _, row := range rows {
				if row.flat && from.Binary == to.Binary {
					growth := ratio(row.value(to), row.value(from))
					goal.Judge(growth <= maxGrowth, fmt.Sprintf("%s: %s ×%.2f", to.name(), row.name, growth))
				}
			}
		}
	}
	return goal
}

func ratio(is, was float64) float64 { return is / max(was, 1e-9) }
