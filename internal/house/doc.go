// Package house contains only tests. They check the rules of this repository that no linter checks:
// documentation matches the code, every folder has a layer and a package comment, no file is too
// long, comments and prose are narrow, and Makefile and Skaffold work as documented. golangci-lint
// checks the other rules, such as the imports between layers (.golangci.yaml).
package house
