// Package house holds no code: its tests keep the rules of this repository that no linter checks.
// Documentation follows the code, every folder has a layer and a doc.go, files stay small, comments
// stay narrow, and Makefile and Skaffold do what they promise. What golangci-lint can check is in
// .golangci.yaml, imports between layers included.
package house
