// Package develop is the inner loop of a developer: it builds an image from the sources, loads it
// onto the nodes, rolls it out, renders the chart, and attaches a debugger.
package develop
