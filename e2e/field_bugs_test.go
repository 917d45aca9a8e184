//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/gardener-extensions/registry-cache/cmd/testbed/cli"
	"github.com/gardener-extensions/registry-cache/e2e/rig"
	"github.com/gardener-extensions/registry-cache/internal/program"
	"github.com/gardener-extensions/registry-cache/kind/fieldbugs"
)

// fieldBugsFile contains the results. `make field-bugs` writes them to docs/field-bugs.md.
const fieldBugsFile = "field-bugs.json"

// fieldBugs returns the field bugs of the lane as scenarios, in the order of the catalog. The
// scenarios run command lines of `testbed`, see kind/fieldbugs.
func fieldBugs(lane fieldbugs.Lane) []rig.Scenario {
	var all []rig.Scenario
	for _, bug := range fieldbugs.InLane(lane) {
		all = append(all, rig.New(bug.ID, rig.Prove(bug.Title, func(ctx context.Context, p *rig.Run) { reproduce(ctx, p, bug) })))
	}
	return all
}

func reproduce(ctx context.Context, p *rig.Run, bug fieldbugs.Bug) {
	p.Helper()
	p.Session.Disturbed.Store(true) // the commands change the shoot
	transcript, err := os.CreateTemp(p.Session.Scratch, bug.ID)
	p.Check(err)
	defer func() { _ = transcript.Close() }()
	result := fieldbugs.Reproduce(ctx, bug, func(ctx context.Context, args []string, out, err io.Writer) int {
		return execute(ctx, p, args, out, err)
	}, fieldbugs.Options{
		Transcript: transcript,
		OnBroken: func(ctx context.Context, reason string) {
			p.Diagnosed, p.Missing = true, p.Session.Diagnose(ctx, bug.ID, reason)
		},
	})
	p.Check(fieldbugs.Record(filepath.Join(rig.Artifacts, fieldBugsFile), result))
	for _, figure := range result.Figures {
		p.Evidence("%s: %.1fs of %.0fs", figure.Name, figure.Seconds, figure.Bound)
	}
	if !result.Good() {
		keepTranscript(p, transcript.Name(), bug.ID)
		p.Fatalf("%s", result)
	}
	p.Evidence("%s", result)
}

// keepTranscript copies the transcript of the command lines to the artifacts.
func keepTranscript(p *rig.Run, from, id string) {
	p.Helper()
	folder := filepath.Join(rig.Artifacts, id)
	content, err := os.ReadFile(from)
	if err == nil {
		err = os.MkdirAll(folder, 0o750)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, "transcript.txt"), content, 0o600)
	}
	if err != nil {
		p.Logf("the transcript could not be stored: %v", err)
	}
}

// execute runs a command line of `testbed` in this process.
func execute(ctx context.Context, p *rig.Run, args []string, out, err io.Writer) int {
	std := program.Streams{Out: out, Err: err}
	root := cli.New(std)              //nolint:contextcheck // its commands get ctx from program.Run
	root.SetIn(strings.NewReader("")) // tests in the background must not read from the terminal
	return program.Run(ctx, root, std, append([]string{fmt.Sprintf("--prefix=%s", p.Session.Testbed.Prefix)}, args...))
}
