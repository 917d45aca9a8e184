package plantedbugs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	kindexec "sigs.k8s.io/kind/pkg/exec"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/bringup"
	"github.com/gardener-extensions/registry-cache/kind/command"
	"github.com/gardener-extensions/registry-cache/kind/engine"
	"github.com/gardener-extensions/registry-cache/kind/file"
	"github.com/gardener-extensions/registry-cache/kind/progress"
)

const scenariosPackage = "./e2e"

// Prove checks that the scenarios detect the planted bugs. It first runs all their scenarios
// without a planted bug: they must pass. Then it plants each bug, runs its scenarios, which must
// fail, and restores the build without bugs. It creates the testbed if it does not exist, and keeps
// it. The output and artifacts of each run are in Folder.
//
// If Prove stops early, it returns the findings so far and an error with the reason. Report.Err
// names the bugs that were not caught. With another prefix than kind.DefaultPrefix, the report is
// nil: the scenarios are separate processes and run only on the default testbed.
//
// Prove returns a *StartError and changes nothing if, at the start, another process uses the
// testbed or runs Prove on it, or the testbed belongs to another directory. If another process or
// directory takes the testbed later, Prove returns kind.ErrBusy or a *kind.OtherCheckoutError
// without a *StartError, and a planted bug may remain. If the scenarios cannot start, the error
// is an environment error.
func Prove(ctx context.Context, t *kind.Testbed, bugs []Mutant) (*Report, error) {
	if t.Prefix != kind.DefaultPrefix {
		return nil, fmt.Errorf("scenarios run only on testbed %s, not on %s", kind.DefaultPrefix, t.Prefix)
	}
	begun := time.Now()
	report := &Report{Findings: []Finding{}}
	defer func() { report.Seconds = time.Since(begun).Seconds() }()
	release, err := lockProof(ctx, t)
	if err != nil {
		return report, &StartError{err}
	}
	defer release()
	if err := os.RemoveAll(t.State.Mutants()); err != nil {
		return report, fmt.Errorf("remove the logs of earlier proofs: %w", err)
	}
	if err := os.MkdirAll(t.State.Mutants(), 0o755); err != nil {
		return report, fmt.Errorf("create the folder for logs: %w", err)
	}
	program, err := buildScenarios(ctx, t, nil)
	if err != nil {
		return report, err
	}
	if err := proveWithoutBug(ctx, t, program, ScenariosOf(bugs)); err != nil {
		return report, err
	}
	for _, bug := range bugs {
		start := time.Now()
		outcomes, err := proveBug(ctx, t, program, bug)
		if err != nil {
			return report, err
		}
		finding := Judge(bug, outcomes)
		finding.Seconds = time.Since(start).Seconds()
		report.Findings = append(report.Findings, finding)
	}
	return report, nil
}

// Folder returns the folder with the logs and artifacts of Prove, which `testbed down` removes.
func Folder(t *kind.Testbed) string { return t.Relative(t.State.Mutants()) }

func proveWithoutBug(ctx context.Context, t *kind.Testbed, program string, scenarios []string) error {
	return t.Recorder.Step(ctx, "no planted bug", func(ctx context.Context) error {
		outcomes, err := runScenarios(ctx, t, firstRunTimeout, program, Mutant{Name: "none", Scenarios: scenarios}, "")
		if err != nil {
			return err
		}
		progress.Note(ctx, "%d scenarios ran", len(scenarios))
		return checkPassed(scenarios, outcomes)
	})
}

// proveBug runs the scenarios of the planted bug, and restores the build without bugs.
func proveBug(ctx context.Context, t *kind.Testbed, program string, bug Mutant) (outcomes []Outcome, err error) {
	err = progress.InOrder(ctx,
		t.Step("planted bug "+bug.Name, func(ctx context.Context) error {
			planted := bug.Name
			if bug.OfTestbed() {
				planted = ""
				if program, err = buildScenarios(ctx, t, &bug); err != nil {
					return err
				}
			}
			if outcomes, err = runScenarios(ctx, t, runTimeout, program, bug, planted); err != nil {
				return err
			}
			if finding := Judge(bug, outcomes); finding.Caught {
				progress.Note(ctx, "caught by %s", strings.Join(bug.Scenarios, ", "))
			} else {
				progress.Note(ctx, "not caught: %s", finding.Problem)
			}
			return nil
		}),
		t.Step("restore the build without bugs", func(ctx context.Context) error {
			if bug.OfTestbed() {
				return nil
			}
			return restoreBuild(ctx, t)
		}),
	)
	return outcomes, err
}

// restoreBuild calls bringup.Up without a planted bug, like a separate `testbed up`.
func restoreBuild(ctx context.Context, t *kind.Testbed) error {
	log, err := os.OpenFile(filepath.Join(t.State.Mutants(), "restore.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("create a log: %w", err)
	}
	unplanted, err := kind.New(kind.Options{Prefix: t.Prefix, Root: t.Root, Directory: filepath.Dir(string(t.State)), Out: log})
	if err == nil {
		err = bringup.Up(ctx, unplanted)
	}
	return errors.Join(err, log.Close())
}

// buildScenarios returns the program of the scenarios, built with the bug unless it is nil.
func buildScenarios(ctx context.Context, t *kind.Testbed, bug *Mutant) (string, error) {
	program, overlay := filepath.Join(t.Root, "bin", "e2e.test"), []string{}
	if bug != nil {
		directory, err := kind.BinaryDirectory(t.Root)
		if err != nil {
			return "", err
		}
		unlock, err := file.Lock(ctx, directory+".lock", kind.BuildLockTimeout)
		if err != nil {
			return "", fmt.Errorf("binaries of %s: %w", t.Root, err)
		}
		defer unlock()
		path, err := bug.Overlay(t.Root, filepath.Join(directory, "mutant"))
		if err != nil {
			return "", err
		}
		program, overlay = filepath.Join(directory, "mutant", "e2e.test"), []string{"-overlay", path}
	}
	args := append([]string{"test", "-C", t.Root, "-c", "-tags", "e2e", "-trimpath", "-buildvcs=false", "-o", program}, overlay...)
	cmd := kindexec.CommandContext(ctx, "go", append(args, scenariosPackage)...)
	cmd.SetEnv(append(os.Environ(), "CGO_ENABLED=0")...)
	if _, err := command.Run(ctx, cmd); err != nil {
		return "", fmt.Errorf("build the scenarios: %w", err)
	}
	return program, nil
}

// lockProof prevents a second proof until release is called. It does not hold the other locks,
// which the scenarios need.
func lockProof(ctx context.Context, t *kind.Testbed) (release func(), err error) {
	release, err = t.LockProof()
	if err != nil {
		return nil, err
	}
	if err := checkUnused(ctx, t); err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// checkUnused returns kind.ErrBusy if another process uses the testbed, and a
// *kind.OtherCheckoutError if the testbed belongs to another directory.
func checkUnused(ctx context.Context, t *kind.Testbed) error {
	unlock, err := t.Lock()
	if err != nil {
		return err
	}
	defer unlock()
	if engine.Running(ctx) == nil { // without a container engine there is no testbed to own
		return nil
	}
	return t.CheckOwner(ctx)
}

// StartError says why Prove did not start, for example kind.ErrBusy. Nothing was changed.
type StartError struct{ error }

func (e *StartError) Unwrap() error { return e.error }
