package failover

import (
	"bytes"
	"errors"
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
	rowHeight = 34
	margin    = 110 // for title, axis and legend
	plotWidth = 780
	radius    = 5
	// legendRows is the room above the rows for the legend.
	legendRows, legendPadding = 1.5, 3
	// shortest and longest are the ends of the axis, in seconds.
	shortest, longest = 0.1, 300
)

var (
	palette = []color.Color{
		color.RGBA{R: 0x00, G: 0x72, B: 0xb2, A: 0xff}, color.RGBA{R: 0x00, G: 0x9e, B: 0x73, A: 0xff}, color.RGBA{R: 0xcc, G: 0x79, B: 0xa7, A: 0xff},
	}
	oldColor    = color.RGBA{R: 0xd5, G: 0x5e, B: 0x00, A: 0xff}
	directColor = color.Gray{Y: 0x88}
)

// Plot renders the times of pulls on a logarithmic axis, as an SVG with one row for each failure.
func Plot(all []Result) ([]byte, error) {
	plot.DefaultFont = font.Font{Typeface: "Liberation", Variant: "Sans"}
	picture := plot.New()
	picture.Title.Text, picture.BackgroundColor = "Seconds of a pull", color.White
	picture.Add(plotter.NewGrid())
	names, versions := failuresOf(all), versionsOf(all)
	slices.Reverse(names) // the axis goes upwards
	add := func(title string, style draw.GlyphStyle, value func(name string) float64) error {
		var points plotter.XYs
		for row, name := range names {
			if seconds := value(name); seconds > 0 {
				points = append(points, plotter.XY{X: seconds, Y: float64(row)})
			}
		}
		if len(points) == 0 {
			return nil
		}
		scatter, err := plotter.NewScatter(points)
		if err != nil {
			return fmt.Errorf("points of %s: %w", title, err)
		}
		scatter.GlyphStyle = style
		picture.Add(scatter)
		picture.Legend.Add(title+"  ", scatter) // fonts differ in width
		return nil
	}
	glyph := func(color color.Color, shape draw.GlyphDrawer) draw.GlyphStyle {
		return draw.GlyphStyle{Color: color, Radius: vg.Points(radius), Shape: shape}
	}
	err := add("direct", glyph(directColor, draw.RingGlyph{}), func(name string) float64 { return find(all, name, versions[0]).Direct })
	for i, version := range versions {
		err = errors.Join(err, add("containerd "+version, glyph(palette[i%len(palette)], draw.CircleGlyph{}), func(name string) float64 {
			return find(all, name, version).Took
		}))
	}
	err = errors.Join(err, add("old configuration", glyph(oldColor, draw.PyramidGlyph{}), func(name string) float64 { return oldOf(all, name) }))
	if err != nil {
		return nil, err
	}
	picture.NominalY(names...)
	picture.X.Min, picture.X.Max, picture.X.Scale, picture.X.Tick.Marker = shortest, longest, plot.LogScale{}, plot.LogTicks{Prec: -1}
	picture.Legend.Top, picture.Legend.Padding = true, vg.Points(legendPadding)
	picture.Y.Min, picture.Y.Max = -1, float64(len(names))+legendRows
	writer, err := picture.WriterTo(vg.Points(plotWidth), vg.Points(float64(rowHeight*len(names)+margin)), "svg")
	if err != nil {
		return nil, fmt.Errorf("rendering: %w", err)
	}
	var svg bytes.Buffer
	_, err = writer.WriteTo(&svg)
	return svg.Bytes(), err
}
