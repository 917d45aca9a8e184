package kind

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gardener-extensions/registry-cache/kind/doctor"
	"github.com/gardener-extensions/registry-cache/kind/engine"
	"github.com/gardener-extensions/registry-cache/kind/preflight"
)

// Doctor looks at the machine, the Docker Engine and the testbed, and says what is wrong and what to do about it. It changes
// nothing, but for starting an engine of ours that has died, and takes no lock. It fails only when it cannot look.
func (t *Testbed) Doctor(ctx context.Context) (*doctor.Report, error) {
	report := &doctor.Report{}
	machine, err := t.doctorMachine(ctx)
	if err != nil {
		return nil, err
	}
	report.Add("this machine", machine...)
	found, err := engine.Attach(ctx)
	missing := (*engine.Missing)(nil)
	switch {
	case errors.As(err, &missing):
		report.Add("Docker Engine", doctor.Item{Mark: doctor.Problem, Text: missing.What, Fix: missing.Fix})
		return report, nil
	case err != nil:
		report.Add("Docker Engine", doctor.Item{
			Mark: doctor.Problem, Text: firstLine(err), Fix: "see the log of dockerd; `testbed up` starts one of ours anew",
		})
		return report, nil
	case found == nil:
		report.Add("Docker Engine", doctor.Item{
			Mark: doctor.Notice, Text: "none answers",
			Fix: "testbed up (it installs one on Debian and Ubuntu, as root; elsewhere install and start one)",
		})
		return report, nil
	}
	report.Add("Docker Engine", doctor.Item{Mark: doctor.Fine, Text: fmt.Sprintf("%s, API %s", found.Version, found.APIVersion)})
	items, err := t.doctorTestbed(ctx)
	if err != nil {
		return nil, err
	}
	report.Add("testbed "+t.prefix, items...)
	return report, nil
}

// doctorMachine compares the machine with what `up` would still need.
func (t *Testbed) doctorMachine(ctx context.Context) ([]doctor.Item, error) {
	requirements := preflight.Defaults()
	if found, err := t.look(ctx); err == nil { // without it the disk is not known, and the engine's part says why
		requirements.Disk = diskNeeded(found)
	}
	host, failed, err := preflight.Look(ctx, requirements)
	if err != nil {
		return nil, err
	}
	return doctor.Machine(host, failed), nil
}

func (t *Testbed) doctorTestbed(ctx context.Context) ([]doctor.Item, error) {
	items := t.doctorProcesses()
	dir, err := os.MkdirTemp("", "testbed-doctor-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for what is found: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	exported, err := t.export(ctx, filepath.Join(dir, t.prefix), t.collect)
	if errors.Is(err, ErrDown) {
		return append(items, doctor.Item{Mark: doctor.Notice, Text: "it is not up", Fix: "testbed up"}), nil
	}
	if foreign := (*ForeignError)(nil); errors.As(err, &foreign) {
		return append(items, doctor.Item{
			Mark: doctor.Notice, Text: "it belongs to " + foreign.Directory, Fix: "look at it there, or have another one by --prefix NAME",
		}), nil
	}
	if err != nil {
		return nil, err
	}
	items = append(items, doctor.Findings(exported.Findings)...)
	if exported.Missing != "" {
		items = append(items, doctor.Item{
			Mark: doctor.Notice, Text: "not everything could be looked at", Details: []string{exported.Missing},
			Fix: "testbed up repairs what is not healthy",
		})
	}
	return items, nil
}

// doctorProcesses tells who works on the testbed now, and of processes that an interrupted command has left.
func (t *Testbed) doctorProcesses() []doctor.Item {
	if holder := t.LockHolder(); holder != "" {
		return []doctor.Item{{Mark: doctor.Notice, Text: "a command is, or was last, at work on it" + holder}}
	}
	left, err := markedProcesses("/proc", t.prefix)
	if err != nil || len(left) == 0 {
		return nil
	}
	return []doctor.Item{{
		Mark: doctor.Notice, Text: fmt.Sprintf("processes of an interrupted command still run: %v", left),
		Fix: "testbed up goes on, testbed down ends them",
	}}
}
