package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/internal/program"
)

// TestUsage: wrong arguments are reported before anything is built.
func TestUsage(t *testing.T) {
	for want, args := range map[string][]string{
		"breaks two shoots": {"controller", "--shoots=10,2"},
		"unknown flag":      {"cache", "--from=x"},
		"name a command":    {},
	} {
		var out, messages bytes.Buffer
		streams := program.Streams{Out: &out, Err: &messages}
		code := program.Run(t.Context(), newCommand(streams), streams, args)
		if code != program.ExitUsage || !strings.Contains(messages.String(), want) || out.Len() > 0 {
			t.Errorf("%q: exit code %d, standard error %q, standard output %q", args, code, &messages, &out)
		}
	}
}
