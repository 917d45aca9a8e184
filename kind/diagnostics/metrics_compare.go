package diagnostics

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// comparedFamilies are the metrics about pulls and reconciliations.
var comparedFamilies = []string{
	"registry_proxy_", "registry_http_requests_total", "registry_cache_", `controller_runtime_reconcile_total{controller="registry-cache"`,
	"controller_runtime_webhook_requests_total",
}

// series parses Prometheus's text format. It returns the values of the series of comparedFamilies,
// without buckets.
func series(content []byte) map[string]float64 {
	all := map[string]float64{}
	for line := range strings.Lines(string(content)) {
		line = strings.TrimSpace(line)
		i := strings.LastIndex(line, " ")
		if i < 0 || strings.HasPrefix(line, "#") || strings.Contains(line, "_bucket{") {
			continue
		}
		value, err := strconv.ParseFloat(line[i+1:], 64)
		for _, family := range comparedFamilies {
			if err == nil && strings.HasPrefix(line, family) {
				all[line[:i]] = value
			}
		}
	}
	return all
}

// compareMetrics returns a table of the series that are or were not zero.
func compareMetrics(before map[string][]byte, at time.Time, now map[string][]byte) string {
	var out bytes.Buffer
	if len(before) == 0 {
		out.WriteString("There are no earlier metrics. The next bundle of this testbed is compared with this one.\n")
	} else {
		fmt.Fprintf(&out, "before: %s\n", at.UTC().Format(time.RFC3339))
	}
	table := tabwriter.NewWriter(&out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "before\tnow\tchange\t")
	for _, pod := range sortedKeys(now) {
		was, is := series(before[pod]), series(now[pod])
		_, known := before[pod]
		for _, name := range sortedKeys(is) {
			if is[name] == 0 && was[name] == 0 {
				continue
			}
			old, change := "-", "-"
			if known {
				old, change = number(was[name]), number(is[name]-was[name])
			}
			fmt.Fprintf(table, "%s\t%s\t%s\t  %s %s\n", old, number(is[name]), change, pod, name)
		}
	}
	_ = table.Flush() // a buffer does not fail
	return out.String()
}

func number(value float64) string { return strconv.FormatFloat(value, 'f', -1, 64) }
