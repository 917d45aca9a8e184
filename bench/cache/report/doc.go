// Package report renders a result of the benchmark: tables in Markdown, plots in SVG, and the page
// docs/benchmarks.md with both.
//
// The package must not measure. Equal results give equal files.
package report
