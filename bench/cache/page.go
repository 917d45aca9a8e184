package cache

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"

	"github.com/gardener-extensions/registry-cache/bench"
)

// Names of the files of a report below docs.
const (
	PageFile = "benchmarks.md"
	jsonFile = "benchmarks/cache.json"
)

// page is an introduction, and the template "report" with what depends on results.
//
//go:embed benchmarks.md.tmpl
var page string

// Markdown renders machine, goals, rows and faults.
func (r Report) Markdown() string { return r.render("report") }

func (r Report) render(name string) string {
	var b strings.Builder
	functions := template.FuncMap{
		"cell": cell, "columns": func() []column { return columns }, "contenders": func() []string { return Contenders },
		"details": details, "gib": func(n uint64) string { return fmt.Sprintf("%.0f", float64(n)/(1<<30)) }, "join": strings.Join,
		"mb": func(n int64) string { return fmt.Sprintf("%.1f", float64(n)/MB) }, "oneLine": func(s string) string { return strings.ReplaceAll(s, "\n", "; ") },
		"rows": func(state string) []Measured {
			return slices.DeleteFunc(slices.Clone(r.Rows), func(m Measured) bool { return m.State != state })
		},
	}
	if err := template.Must(template.New("page").Funcs(functions).Parse(page)).ExecuteTemplate(&b, name, r); err != nil {
		panic(err) // it depends on the template alone
	}
	return b.String()
}

// details are those of missed rows, or of all rows if there are few.
func details(g bench.Goal) string {
	const few = 5
	switch {
	case len(g.Missed) > 0:
		return strings.Join(g.Missed, "<br>")
	case len(g.Details) > few:
		return fmt.Sprintf("all %d", len(g.Details))
	default:
		return strings.Join(g.Details, "<br>")
	}
}

// column has a value of each contender, in the order of Contenders.
type column struct {
	Title, format string
	process       bool // direct has no process
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

// Read reads the JSON of an earlier run, and judges its goals again.
func Read(file string) (r Report, err error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return r, fmt.Errorf("read a report: %w", err)
	}
	if err := json.Unmarshal(content, &r); err != nil {
		return r, fmt.Errorf("report %s is no output of --json: %w", file, err)
	}
	if len(r.Rows) == 0 {
		return r, fmt.Errorf("report %s has no rows", file)
	}
	r.Goals = Judge(r.Rows, r.Machine.SHA256PerGB)
	return r, nil
}

// Write writes the page and its JSON below the folder.
func (r Report) Write(folder string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the report: %w", err)
	}
	for name, content := range map[string][]byte{jsonFile: append(text, '\n'), PageFile: []byte(r.render("page"))} {
		file := filepath.Join(folder, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, content, 0o644)); err != nil {
			return fmt.Errorf("write the report: %w", err)
		}
	}
	return nil
}
