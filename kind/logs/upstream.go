package logs

import (
	"context"
	"io"
	"time"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/shell"
)

// UpstreamLogs returns the access logs of upstreams, one JSON record a line.
func UpstreamLogs(t *kind.Testbed) []Stream {
	var streams []Stream
	for _, registry := range t.Upstreams.All() {
		container := registry.Container()
		open := func(ctx context.Context, window Window, out io.Writer) error {
			return shell.Capture(ctx, dockerLogsArgv(container, window), out)
		}
		streams = append(streams, Stream{Name: registry.Host(), Open: open, Parse: Container})
	}
	return streams
}

func dockerLogsArgv(container string, window Window) []string {
	argv := []string{"docker", "logs", "--timestamps"}
	if !window.Since.IsZero() {
		argv = append(argv, "--since="+window.Since.UTC().Format(time.RFC3339Nano))
	}
	if window.Follow {
		argv = append(argv, "--follow")
	}
	return append(argv, container)
}
