package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/bringup"
	"github.com/gardener-extensions/registry-cache/kind/diagnostics"
	"github.com/gardener-extensions/registry-cache/kind/engine"
	"github.com/gardener-extensions/registry-cache/kind/preflight"
	"github.com/gardener-extensions/registry-cache/kind/process"
)

// Examine examines the machine, the Docker Engine and the testbed, and reports what is wrong and
// how to fix it. It takes no lock and changes nothing, except that it restarts an engine that the
// testbed started and that has died. It returns an error only if it cannot examine them.
func Examine(ctx context.Context, t *kind.Testbed) (*Report, error) {
	report := &Report{}
	machine, err := examineMachine(ctx, t)
	if err != nil {
		return nil, err
	}
	report.Add("this machine", machine...)
	found, err := engine.Attach(ctx)
	missing := (*engine.Missing)(nil)
	switch {
	case errors.As(err, &missing):
		report.Add("Docker Engine", Item{Mark: Problem, Text: missing.What, Fix: missing.Fix})
		return report, nil
	case err != nil:
		text, _, _ := strings.Cut(err.Error(), "\n")
		report.Add("Docker Engine", Item{
			Mark: Problem, Text: text, Fix: "see the log of dockerd; `testbed up` restarts the testbed's engine",
		})
		return report, nil
	case found == nil:
		report.Add("Docker Engine", Item{
			Mark: Notice, Text: "no Docker Engine answers",
			Fix: "run `testbed up` (as root on Debian and Ubuntu it installs one), or install and start one",
		})
		return report, nil
	}
	report.Add("Docker Engine", Item{Mark: Fine, Text: fmt.Sprintf("%s, API %s", found.Version, found.APIVersion)})
	items, err := examineTestbed(ctx, t)
	if err != nil {
		return nil, err
	}
	report.Add("testbed "+t.Prefix, items...)
	return report, nil
}

// examineMachine compares the machine with what Up still needs.
func examineMachine(ctx context.Context, t *kind.Testbed) ([]Item, error) {
	requirements := preflight.Defaults()
	if disk, err := bringup.DiskNeeded(ctx, t); err == nil { // otherwise the engine's section says why
		requirements.Disk = disk
	}
	host, failed, err := preflight.Inspect(ctx, requirements)
	if err != nil {
		return nil, err
	}
	return Machine(host, failed), nil
}

func examineTestbed(ctx context.Context, t *kind.Testbed) ([]Item, error) {
	items := examineProcesses(t)
	dir, err := os.MkdirTemp("", "testbed-doctor-")
	if err != nil {
		return nil, fmt.Errorf("create a folder for the diagnostics: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	exported, err := diagnostics.ExportWith(ctx, t, filepath.Join(dir, t.Prefix),
		func(ctx context.Context, dir string, more ...diagnostics.Source) error {
			return diagnostics.CollectFrom(ctx, t, dir, more...)
		})
	if errors.Is(err, kind.ErrDown) {
		return append(items, Item{Mark: Notice, Text: "the testbed is not up", Fix: "run testbed up"}), nil
	}
	if other := (*kind.OtherCheckoutError)(nil); errors.As(err, &other) {
		return append(items, Item{
			Mark: Notice, Text: "the testbed belongs to " + other.Directory, Fix: "run testbed doctor there, or use another testbed with --prefix NAME",
		}), nil
	}
	if err != nil {
		return nil, err
	}
	items = append(items, Findings(exported.Findings)...)
	if exported.Missing != "" {
		items = append(items, Item{
			Mark: Notice, Text: "some of it could not be examined", Details: []string{exported.Missing},
			Fix: "run testbed up, which repairs what is not healthy",
		})
	}
	return items, nil
}

// examineProcesses reports the process that works on the testbed, or else the processes that an
// interrupted command left.
func examineProcesses(t *kind.Testbed) []Item {
	if holder := t.LockHolder(); holder != "" {
		return []Item{{Mark: Notice, Text: "a command is working on it, or was the last to do so" + holder}}
	}
	left, err := process.Marked("/proc", t.Prefix)
	if err != nil || len(left) == 0 {
		return nil
	}
	return []Item{{
		Mark: Notice, Text: fmt.Sprintf("processes of an interrupted command still run: %v", left),
		Fix: "testbed up continues, testbed down ends them",
	}}
}
