package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// args matches the arguments of the container in the rendered chart.
var args = regexp.MustCompile(`(?m)^ +- (serve|--[^\n]+)$`)

// TestChartPassesKnownFlags reads what the chart renders to: an unknown flag there is a pod that crashes.
func TestChartPassesKnownFlags(t *testing.T) {
	for _, rendered := range []string{"minimal.yaml", "operator.yaml", "full.yaml"} {
		t.Run(rendered, func(t *testing.T) {
			manifest, err := os.ReadFile("../../charts/testdata/registry-cache-admission/runtime/" + rendered)
			if err != nil {
				t.Fatal(err)
			}
			var flags []string
			for _, match := range args.FindAllStringSubmatch(string(manifest), -1) {
				flags = append(flags, strings.TrimSpace(match[1]))
			}
			if len(flags) < 8 || flags[0] != "serve" {
				t.Fatalf("the chart passes %q", flags)
			}
			serve := newServeCommand()
			if err := serve.ParseFlags(flags[1:]); err != nil {
				t.Errorf("%q: %v", flags, err)
			}
		})
	}
}
