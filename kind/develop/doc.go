// Package develop builds an image from the sources, loads it onto the nodes, rolls it out, renders
// the chart, and attaches a debugger. Developers use it while they change the sources.
package develop
