package cli

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/gardener-extensions/registry-cache/internal/program"
	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/trace"
)

func newTraceCommand(options *kind.Options, std program.Streams) *cobra.Command {
	var (
		wanted trace.Options
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "trace IMAGE",
		Short: "Show the requests between nodes, caches and upstreams during the pulls of an image",
		Long: `Shows who asked whom during the pulls of an image, whoever started them: nodes their caches and the upstream, caches the
upstream; with status, bytes and seconds, and what a node gave up. First come pulls that have ended (--since), then, as it
happens, those that are under way; it ends with them, or with -f by Ctrl-C. It only reads logs of containerd, caches and
upstreams, and starts no pull. A cache is asked for a repository: whose request it passed on to the upstream, no log says.`,
		Example: "  testbed trace alpha.upstream.test/shop/web:v1\n  testbed trace -f --since 0 alpha.upstream.test/shop/web",
		Args:    program.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			wanted.Image = args[0]
			if wanted.Since < 0 {
				return program.Usage(fmt.Errorf("--since %s: want a duration that is not negative", wanted.Since))
			}
			testbed, err := newTestbed(*options)
			if err != nil {
				return err
			}
			events := 0
			show := printEvent(std, asJSON)
			summary, err := trace.Run(cmd.Context(), testbed, wanted, func(event trace.Event) {
				events++
				show(event)
			})
			if err != nil {
				return err
			}
			if err := nobodyAsked(wanted, events); err != nil {
				return err
			}
			return summary.Write(std.Err)
		},
	}
	cmd.Flags().BoolVarP(&wanted.Follow, "follow", "f", false, "wait for further pulls, until Ctrl-C")
	cmd.Flags().DurationVar(&wanted.Since, "since", 10*time.Minute, "how far back pulls are shown that have ended")
	addOutput(cmd, &asJSON, "print one JSON object a line")
	return cmd
}

// nobodyAsked says how there would be something to show, if there was nothing. Who followed has
// waited for as long as was wanted: that nobody came is no failure.
func nobodyAsked(wanted trace.Options, events int) error {
	switch {
	case events > 0 || wanted.Follow:
		return nil
	case wanted.Since == 0:
		return fmt.Errorf("--since 0 shows nothing that was: -f waits for who asks for %s, --since 10m shows who has", wanted.Image)
	default:
		return fmt.Errorf("nobody has asked for %s in the last %s: -f waits for who does", wanted.Image, wanted.Since)
	}
}

func printEvent(std program.Streams, asJSON bool) func(trace.Event) {
	if !asJSON {
		return func(event trace.Event) { fmt.Fprintln(std.Out, event) }
	}
	encoder := json.NewEncoder(std.Out)
	return func(event trace.Event) { _ = encoder.Encode(event) } // to a terminal or a pipe: there is nobody left to tell
}
