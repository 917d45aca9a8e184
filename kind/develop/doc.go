// Package develop builds an image from the sources, loads it onto the nodes, rolls it out, renders
// the chart, attaches a debugger, and runs programs on nodes and kubectl on the clusters. Developers
// use it while they change the sources.
package develop
