// Package develop builds an image from the sources, loads it onto the nodes, rolls it out, renders
// the chart, and runs programs on nodes and kubectl on the clusters.
package develop
