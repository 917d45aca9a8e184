package cache

import (
	"cmp"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"text/template"
	"time"

	"github.com/gardener-extensions/registry-cache/bench"
)

// Report is the result of one run.
type Report struct {
	Date, Machine string
	Versions      map[string]string // of the contenders
	Rounds        int
	SHA256PerGB   float64 // the time of one SHA-256 pass over 1 GB, in seconds
	Rows          []Measured
}

// Measured is a row with the median results of each contender.
type Measured struct {
	Row
	Results map[string]Result
}

// Result contains the measured values of one contender in one row.
type Result struct {
	Throughput          float64       // of all clients together, in bytes per second
	FirstByte, LastByte bench.Latency // of downloads that succeeded
	Slowest             float64       // seconds to the first byte, or to the error, of the slowest download
	CPUPerGB            float64       // CPU seconds per GB delivered
	Peak                float64       // bytes of resident memory
	// UpstreamRequests and UpstreamBytes are what the line to the upstream counted.
	UpstreamRequests, UpstreamBytes float64
	Failed                          float64 // number of failed downloads
	Failure                         string  // the error of one failed download
}

// summary returns the latencies, the throughput, the failures, and the bytes of all answers.
func summary(answers []reply, took time.Duration) (r Result, bytes int64) {
	var first, last []time.Duration
	for _, a := range answers {
		bytes += a.Bytes
		r.Slowest = max(r.Slowest, a.First.Seconds())
		if a.Err != nil {
			r.Failed++
			r.Failure = a.Err.Error()
			continue
		}
		first, last = append(first, a.First), append(last, a.Last)
	}
	r.FirstByte, r.LastByte = bench.NewLatency(first), bench.NewLatency(last)
	r.Throughput = float64(bytes) / took.Seconds()
	return r, bytes
}

// values returns pointers to the measured values of a result.
func (r *Result) values() []*float64 {
	return []*float64{
		&r.Throughput, &r.FirstByte.P50, &r.FirstByte.P99, &r.LastByte.P50, &r.LastByte.P99, &r.Slowest,
		&r.CPUPerGB, &r.Peak, &r.UpstreamRequests, &r.UpstreamBytes, &r.Failed,
	}
}

// median returns the median of each value, or the lower middle value for an even number of rounds.
func median(rounds []Result) (m Result) {
	for i, value := range m.values() {
		var all []float64
		for _, round := range rounds {
			all = append(all, *round.values()[i])
		}
		slices.Sort(all)
		*value = all[(len(all)-1)/2]
	}
	for _, round := range rounds {
		m.Failure = cmp.Or(m.Failure, round.Failure)
	}
	return m
}

//go:embed report.md.tmpl
var layout string

// Markdown renders machine, goals, rows and faults.
func (r Report) Markdown() string {
	var b strings.Builder
	functions := template.FuncMap{
		"cell": cell, "columns": func() []column { return columns }, "contenders": func() []string { return Contenders },
		"details": details, "goals": func() []bench.Goal { return judge(r.Rows, r.SHA256PerGB) }, "join": strings.Join,
		"rows": func(state string) []Measured {
			return r.with(func(m Measured) bool { return m.State == state && m.Fault == "" })
		},
		"faults": func() []Measured { return r.with(func(m Measured) bool { return m.Fault != "" }) },
		"whole": func(m Measured, r Result) string {
			return fmt.Sprintf("%.0f of %d", float64(m.Clients)-r.Failed, m.Clients)
		},
		"mb": func(bytes float64) float64 { return bytes / MB }, "oneLine": func(s string) string { return strings.ReplaceAll(s, "\n", "; ") },
	}
	if err := template.Must(template.New("report").Funcs(functions).Parse(layout)).Execute(&b, r); err != nil {
		panic(err) // an error depends only on the template
	}
	return b.String()
}

func (r Report) with(is func(Measured) bool) []Measured {
	return slices.DeleteFunc(slices.Clone(r.Rows), func(m Measured) bool { return !is(m) })
}

// details returns the details of missed rows or, if none is missed, all details or their number.
func details(g bench.Goal) string {
	const few = 4
	switch {
	case len(g.Missed) > 0:
		return strings.Join(g.Missed, "<br>")
	case len(g.Details) > few:
		return fmt.Sprintf("all %d", len(g.Details))
	default:
		return strings.Join(g.Details, "<br>")
	}
}

// column describes a table column. Its cells contain the values in the order of Contenders.
type column struct {
	Title, format string
	process       bool // the value is of the process, which Direct does not have
	value         func(Result) float64
}

var columns = []column{
	{"MB/s", "%.0f", false, func(r Result) float64 { return r.Throughput / MB }},
	{"first byte p50, ms", "%.1f", false, func(r Result) float64 { return 1000 * r.FirstByte.P50 }},
	{"p99", "%.1f", false, func(r Result) float64 { return 1000 * r.FirstByte.P99 }},
	{"last byte p50, ms", "%.0f", false, func(r Result) float64 { return 1000 * r.LastByte.P50 }},
	{"p99", "%.0f", false, func(r Result) float64 { return 1000 * r.LastByte.P99 }},
	{"CPU s/GB", "%.2f", true, func(r Result) float64 { return r.CPUPerGB }},
	{"memory MiB", "%.0f", true, func(r Result) float64 { return r.Peak / (1 << 20) }},
	{"upstream requests", "%.0f", false, func(r Result) float64 { return r.UpstreamRequests }},
	{"upstream MB", "%.0f", false, func(r Result) float64 { return r.UpstreamBytes / MB }},
	{"failed", "%.0f", false, func(r Result) float64 { return r.Failed }},
}

func cell(c column, row Measured) string {
	var values []string
	for _, name := range Contenders {
		if !c.process || name != Direct {
			values = append(values, fmt.Sprintf(c.format, c.value(row.Results[name])))
		}
	}
	return strings.Join(values, "/")
}
