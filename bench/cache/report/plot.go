package report

import (
	"bytes"
	"fmt"
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	_ "gonum.org/v1/plot/vg/vgsvg" // the format of the plots

	"github.com/gardener-extensions/registry-cache/bench/cache"
	"github.com/gardener-extensions/registry-cache/bench/cache/contender"
)

const (
	barWidth  = 9
	rowHeight = 52
	margin    = 90 // for title, axis and legend
	plotWidth = 780
	// legendRoom widens the axis, so that no bar reaches the legend.
	legendRoom = 1.15
)

// barPlot has one bar for each row and contender.
type barPlot struct {
	file, title string
	names       []string // of the contenders
	state       string   // of the rows
	value       func(cache.Result) float64
}

var (
	everyone  = contender.Names
	processes = []string{contender.Ours, contender.Stock, contender.Nginx}
)

var plots = []barPlot{
	{"cache-warm.svg", "Warm: MB/s", everyone, cache.Warm, func(r cache.Result) float64 { return r.Throughput / cache.MB }},
	{"cache-cold.svg", "Cold: MB/s", everyone, cache.Cold, func(r cache.Result) float64 { return r.Throughput / cache.MB }},
	{"cache-herd.svg", "Herd: MB/s", everyone, cache.Herd, func(r cache.Result) float64 { return r.Throughput / cache.MB }},
	{"cache-herd-upstream.svg", "Herd: MB from the upstream", everyone, cache.Herd,
		func(r cache.Result) float64 { return r.UpstreamBytes / cache.MB }},
	{"cache-warm-cpu.svg", "Warm: CPU seconds per GB", processes, cache.Warm, func(r cache.Result) float64 { return r.CPUPerGB }},
	{"cache-cold-cpu.svg", "Cold: CPU seconds per GB", processes, cache.Cold, func(r cache.Result) float64 { return r.CPUPerGB }},
}

var colors = map[string]color.Color{
	contender.Ours:  color.RGBA{R: 0x00, G: 0x72, B: 0xb2, A: 0xff},
	contender.Stock: color.RGBA{R: 0xe6, G: 0x9f, B: 0x00, A: 0xff},
	contender.Nginx: color.RGBA{R: 0x00, G: 0x9e, B: 0x73, A: 0xff}, contender.Direct: color.Gray{Y: 0xaa},
}

// draw renders the rows as an SVG, the first one at the top.
func (p barPlot) draw(rows []cache.Measured) ([]byte, error) {
	plot.DefaultFont = font.Font{Typeface: "Liberation", Variant: "Sans"}
	picture := plot.New()
	picture.Title.Text, picture.BackgroundColor = p.title, color.White
	picture.X.Min = 0
	var titles []string
	values := map[string]plotter.Values{}
	for i := len(rows) - 1; i >= 0; i-- {
		if rows[i].State != p.state {
			continue
		}
		titles = append(titles, rows[i].Name())
		for _, name := range p.names {
			values[name] = append(values[name], p.value(rows[i].Results[name]))
		}
	}
	if len(titles) == 0 {
		titles, values = []string{"not measured"}, map[string]plotter.Values{}
	}
	for i, name := range p.names {
		if values[name] == nil {
			values[name] = plotter.Values{0}
		}
		bars, err := plotter.NewBarChart(values[name], vg.Points(barWidth))
		if err != nil {
			return nil, fmt.Errorf("bars of %s: %w", name, err)
		}
		bars.Horizontal, bars.Color, bars.LineStyle = true, colors[name], draw.LineStyle{}
		bars.Offset = vg.Points(barWidth * (float64(len(p.names)-1)/2 - float64(i)))
		picture.Add(bars)
		picture.Legend.Add(name, bars)
	}
	picture.NominalY(titles...)
	picture.X.Max *= legendRoom
	writer, err := picture.WriterTo(vg.Points(plotWidth), vg.Points(float64(rowHeight*len(titles)+margin)), "svg")
	if err != nil {
		return nil, fmt.Errorf("rendering: %w", err)
	}
	var svg bytes.Buffer
	_, err = writer.WriteTo(&svg)
	return svg.Bytes(), err
}
