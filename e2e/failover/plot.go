package failover

import (
	"bytes"
	"fmt"
	"image/color"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	_ "gonum.org/v1/plot/vg/vgsvg" // the format of the plot
)

const (
	barWidth  = 7
	rowHeight = 34
	margin    = 90 // for title, axis and legend
	plotWidth = 780
	// legendRoom widens the axis, so that no bar reaches the legend.
	legendRoom = 1.4
)

var palette = []color.Color{
	color.RGBA{R: 0x00, G: 0x72, B: 0xb2, A: 0xff}, color.RGBA{R: 0xe6, G: 0x9f, B: 0x00, A: 0xff}, color.RGBA{R: 0x00, G: 0x9e, B: 0x73, A: 0xff},
}

// Plot renders the times of pulls as an SVG with one row for each failure.
func Plot(all []Result) ([]byte, error) {
	plot.DefaultFont = font.Font{Typeface: "Liberation", Variant: "Sans"}
	picture := plot.New()
	picture.Title.Text, picture.BackgroundColor, picture.X.Min = "Seconds of a pull", color.White, 0
	names, versions := failuresOf(all), versionsOf(all)
	slices.Reverse(names) // the axis goes upwards
	add := func(place int, title string, color color.Color, value func(name string) float64) error {
		values := plotter.Values{}
		for _, name := range names {
			values = append(values, value(name))
		}
		bars, err := plotter.NewBarChart(values, vg.Points(barWidth))
		if err != nil {
			return fmt.Errorf("bars of %s: %w", title, err)
		}
		bars.Horizontal, bars.Color, bars.LineStyle = true, color, draw.LineStyle{}
		bars.Offset = vg.Points(barWidth * (float64(len(versions))/2 - float64(place)))
		picture.Add(bars)
		picture.Legend.Add(title, bars)
		return nil
	}
	for i, version := range versions {
		err := add(i, "containerd "+version, palette[i%len(palette)], func(name string) float64 { return find(all, name, version).Took })
		if err != nil {
			return nil, err
		}
	}
	err := add(len(versions), "direct", color.Gray{Y: 0xaa}, func(name string) float64 { return find(all, name, versions[0]).Direct })
	if err != nil {
		return nil, err
	}
	picture.NominalY(names...)
	picture.X.Max *= legendRoom
	writer, err := picture.WriterTo(vg.Points(plotWidth), vg.Points(float64(rowHeight*len(names)+margin)), "svg")
	if err != nil {
		return nil, fmt.Errorf("rendering: %w", err)
	}
	var svg bytes.Buffer
	_, err = writer.WriteTo(&svg)
	return svg.Bytes(), err
}
