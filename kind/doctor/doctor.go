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

// Doctor looks at the machine, the Docker Engine and the testbed, and says what is wrong and what to do about it. It changes
// nothing, but for starting an engine of ours that has died, and takes no lock. It fails only when it cannot look.
func Examine(ctx context.Context, t *kind.Testbed) (*Report, error) {
	report := &Report{}
	machine, err := doctorMachine(ctx, t)
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
			Mark: Problem, Text: text, Fix: "see the log of dockerd; `testbed up` starts one of ours anew",
		})
		return report, nil
	case found == nil:
		report.Add("Docker Engine", Item{
			Mark: Notice, Text: "none answers",
			Fix: "testbed up (it installs one on Debian and Ubuntu, as root; elsewhere install and start one)",
		})
		return report, nil
	}
	report.Add("Docker Engine", Item{Mark: Fine, Text: fmt.Sprintf("%s, API %s", found.Version, found.APIVersion)})
	items, err := doctorTestbed(ctx, t)
	if err != nil {
		return nil, err
	}
	report.Add("testbed "+t.Prefix, items...)
	return report, nil
}

// doctorMachine compares the machine with what `up` would still need.
func doctorMachine(ctx context.Context, t *kind.Testbed) ([]Item, error) {
	requirements := preflight.Defaults()
	if found, err := bringup.Look(ctx, t); err == nil { // without it the disk is not known, and the engine's part says why
		requirements.Disk = bringup.DiskNeeded(found)
	}
	host, failed, err := preflight.Look(ctx, requirements)
	if err != nil {
		return nil, err
	}
	return Machine(host, failed), nil
}

func doctorTestbed(ctx context.Context, t *kind.Testbed) ([]Item, error) {
	items := doctorProcesses(t)
	dir, err := os.MkdirTemp("", "testbed-doctor-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for what is found: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	exported, err := diagnostics.ExportWith(ctx, t, filepath.Join(dir, t.Prefix), func(ctx context.Context, dir string, more ...diagnostics.Source) error {
		return diagnostics.CollectFrom(ctx, t, dir, more...)
	})
	if errors.Is(err, kind.ErrDown) {
		return append(items, Item{Mark: Notice, Text: "it is not up", Fix: "testbed up"}), nil
	}
	if foreign := (*kind.ForeignError)(nil); errors.As(err, &foreign) {
		return append(items, Item{
			Mark: Notice, Text: "it belongs to " + foreign.Directory, Fix: "look at it there, or have another one by --prefix NAME",
		}), nil
	}
	if err != nil {
		return nil, err
	}
	items = append(items, Findings(exported.Findings)...)
	if exported.Missing != "" {
		items = append(items, Item{
			Mark: Notice, Text: "not everything could be looked at", Details: []string{exported.Missing},
			Fix: "testbed up repairs what is not healthy",
		})
	}
	return items, nil
}

// doctorProcesses tells who works on the testbed now, and of processes that an interrupted command has left.
func doctorProcesses(t *kind.Testbed) []Item {
	if holder := t.LockHolder(); holder != "" {
		return []Item{{Mark: Notice, Text: "a command is, or was last, at work on it" + holder}}
	}
	left, err := process.Marked("/proc", t.Prefix)
	if err != nil || len(left) == 0 {
		return nil
	}
	return []Item{{
		Mark: Notice, Text: fmt.Sprintf("processes of an interrupted command still run: %v", left),
		Fix: "testbed up goes on, testbed down ends them",
	}}
}
