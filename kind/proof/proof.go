package proof

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
	"github.com/gardener-extensions/registry-cache/kind/lock"
	"github.com/gardener-extensions/registry-cache/kind/progress"
)

// scenariosPackage are the scenarios, a test with the build tag e2e.
const scenariosPackage = "./e2e"

// ProveScenarios proves that scenarios notice bugs: for each planted bug it runs those that must turn red, on this testbed, which
// it brings up and keeps. First all of them run without a bug, and must be green; after each bug the sound build is brought back.
// It returns what was found so far, also with an error, which says why it could not go on; whether every bug was caught is the
// Report's Err. What a run printed and collected is in a folder of the testbed's state, see ProofFolder.
//
// The scenarios are processes of their own, built from the sources as they are. They run on the testbed of the DefaultPrefix.
//
// While another process works on that testbed, or proves scenarios on it, or where it belongs to another directory, the error is a
// *ProofRefused at the beginning: then nothing was touched. ErrBusy or a *OtherCheckoutError without it comes later, after a planted bug.
// A run that the surroundings keep from starting is an error of the environment too.
func Prove(ctx context.Context, t *kind.Testbed, bugs []Mutant) (*Report, error) {
	if t.Prefix != kind.DefaultPrefix {
		return nil, fmt.Errorf("the scenarios run on the testbed %s, and not on %s", kind.DefaultPrefix, t.Prefix)
	}
	begun := time.Now()
	report := &Report{Findings: []Finding{}}
	defer func() { report.Seconds = time.Since(begun).Seconds() }()
	release, err := beginProof(ctx, t)
	if err != nil {
		return report, &RefusedError{err}
	}
	defer release()
	if err := os.RemoveAll(t.State.Mutants()); err != nil {
		return report, fmt.Errorf("remove what earlier proofs left: %w", err)
	}
	if err := os.MkdirAll(t.State.Mutants(), 0o755); err != nil {
		return report, fmt.Errorf("make a folder for the proofs: %w", err)
	}
	program, err := buildScenarios(ctx, t, nil)
	if err != nil {
		return report, err
	}
	if err := proveSound(ctx, t, program, ScenariosOf(bugs)); err != nil {
		return report, err
	}
	for _, bug := range bugs {
		start := time.Now()
		outcomes, err := proveOne(ctx, t, program, bug)
		if err != nil {
			return report, err
		}
		finding := Judge(bug, outcomes)
		finding.Seconds = time.Since(start).Seconds()
		report.Findings = append(report.Findings, finding)
	}
	return report, nil
}

// ProofFolder is where ProveScenarios keeps what the runs printed and collected; Down removes it.
func Folder(t *kind.Testbed) string { return t.Relative(t.State.Mutants()) }

// proveSound runs the scenarios without any planted bug.
func proveSound(ctx context.Context, t *kind.Testbed, program string, scenarios []string) error {
	return t.Recorder.Step(ctx, "no planted bug", func(ctx context.Context) error {
		outcomes, err := runScenarios(ctx, t, firstProofTimeout, program, Mutant{Name: "none", Scenarios: scenarios}, "")
		if err != nil {
			return err
		}
		progress.Note(ctx, "%d scenarios are green", len(scenarios))
		return Sound(scenarios, outcomes)
	})
}

// proveOne runs the scenarios with the planted bug, and brings the sound build back. program is the sound one of the scenarios.
func proveOne(ctx context.Context, t *kind.Testbed, program string, bug Mutant) (outcomes []Outcome, err error) {
	err = progress.InOrder(ctx,
		t.Step("planted bug "+bug.Name, func(ctx context.Context) error {
			planted := bug.Name
			if bug.OfTestbed() {
				planted = ""
				if program, err = buildScenarios(ctx, t, &bug); err != nil {
					return err
				}
			}
			if outcomes, err = runScenarios(ctx, t, proofTimeout, program, bug, planted); err != nil {
				return err
			}
			if finding := Judge(bug, outcomes); finding.Caught {
				progress.Note(ctx, "caught by %s", strings.Join(bug.Scenarios, ", "))
			} else {
				progress.Note(ctx, "not caught: %s", finding.Problem)
			}
			return nil
		}),
		t.Step("sound again", func(ctx context.Context) error {
			if bug.OfTestbed() {
				return nil
			}
			return restoreSound(ctx, t)
		}),
	)
	return outcomes, err
}

// restoreSound brings the testbed up without a planted bug, as another process would.
func restoreSound(ctx context.Context, t *kind.Testbed) error {
	log, err := os.OpenFile(filepath.Join(t.State.Mutants(), "sound.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("open a log: %w", err)
	}
	sound, err := kind.New(kind.Options{Prefix: t.Prefix, Root: t.Root, Directory: filepath.Dir(string(t.State)), Out: log})
	if err == nil {
		err = bringup.Up(ctx, sound)
	}
	return errors.Join(err, log.Close())
}

// buildScenarios returns the program that runs the scenarios, built with the bug in it, or with none.
func buildScenarios(ctx context.Context, t *kind.Testbed, bug *Mutant) (string, error) {
	program, overlay := filepath.Join(t.Root, "bin", "e2e.test"), []string{}
	if bug != nil {
		directory, err := kind.BinaryDirectory(t.Root)
		if err != nil {
			return "", err
		}
		unlock, err := lock.Wait(ctx, directory+".lock", kind.BuildLockTimeout)
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
