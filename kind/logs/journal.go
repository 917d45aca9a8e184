package logs

import (
	"context"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/shell"
)

// followJournal ends when its input does, which is when the docker command is gone: nothing stays
// on the node.
const followJournal = `journalctl --no-pager --quiet --output=short-iso-precise --follow "$@" & trap 'kill $!' EXIT; cat >/dev/null`

// NodeLogs returns the journals of units of nodes.
func NodeLogs(prefix string, nodes []*cluster.Node, units ...string) []Stream {
	var streams []Stream
	for _, node := range nodes {
		for _, unit := range units {
			name := strings.TrimPrefix(node.Name(), prefix+"-") + "/" + strings.TrimSuffix(unit, path.Ext(unit))
			streams = append(streams, Stream{Name: name, Open: openJournal(node.Name(), unit), Parse: Journal})
		}
	}
	return streams
}

func openJournal(node, unit string) func(context.Context, Window, io.Writer) error {
	return func(ctx context.Context, window Window, out io.Writer) error {
		return shell.Capture(ctx, journalArgv(node, unit, window), out)
	}
}

// journalArgv is the command line that prints a part of a journal.
func journalArgv(node, unit string, window Window) []string {
	selection := []string{"--unit=" + unit}
	if !window.Since.IsZero() {
		selection = append(selection, fmt.Sprintf("--since=@%.6f", float64(window.Since.UnixMicro())/1e6))
	}
	inNode := []string{"docker", "exec", "--interactive", node}
	if !window.Follow {
		return slices.Concat(inNode, []string{"journalctl", "--no-pager", "--quiet", "--output=short-iso-precise"}, selection)
	}
	if window.Since.IsZero() {
		selection = append(selection, "--lines=all")
	}
	return slices.Concat(inNode, []string{"bash", "-c", followJournal, "bash"}, selection)
}
