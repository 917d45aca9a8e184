package kind

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	kindexec "sigs.k8s.io/kind/pkg/exec"

	"github.com/gardener-extensions/registry-cache/kind/command"
	"github.com/gardener-extensions/registry-cache/kind/lock"
	"github.com/gardener-extensions/registry-cache/kind/mutant"
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
// *ProofRefused at the beginning: then nothing was touched. ErrBusy or a *ForeignError without it comes later, after a planted bug.
// A run that the surroundings keep from starting is an error of the environment too.
func (t *Testbed) ProveScenarios(ctx context.Context, bugs []mutant.Mutant) (*mutant.Report, error) {
	if t.prefix != DefaultPrefix {
		return nil, fmt.Errorf("the scenarios run on the testbed %s, and not on %s", DefaultPrefix, t.prefix)
	}
	begun := time.Now()
	report := &mutant.Report{Findings: []mutant.Finding{}}
	defer func() { report.Seconds = time.Since(begun).Seconds() }()
	release, err := t.beginProof(ctx)
	if err != nil {
		return report, &ProofRefused{err}
	}
	defer release()
	if err := os.RemoveAll(t.state.mutants()); err != nil {
		return report, fmt.Errorf("remove what earlier proofs left: %w", err)
	}
	if err := os.MkdirAll(t.state.mutants(), 0o755); err != nil {
		return report, fmt.Errorf("make a folder for the proofs: %w", err)
	}
	program, err := t.buildScenarios(ctx, nil)
	if err != nil {
		return report, err
	}
	if err := t.proveSound(ctx, program, mutant.ScenariosOf(bugs)); err != nil {
		return report, err
	}
	for _, bug := range bugs {
		start := time.Now()
		outcomes, err := t.proveOne(ctx, program, bug)
		if err != nil {
			return report, err
		}
		finding := mutant.Judge(bug, outcomes)
		finding.Seconds = time.Since(start).Seconds()
		report.Findings = append(report.Findings, finding)
	}
	return report, nil
}

// ProofFolder is where ProveScenarios keeps what the runs printed and collected; Down removes it.
func (t *Testbed) ProofFolder() string { return t.relative(t.state.mutants()) }

// proveSound runs the scenarios without any planted bug.
func (t *Testbed) proveSound(ctx context.Context, program string, scenarios []string) error {
	return t.recorder.Step(ctx, "no planted bug", func(ctx context.Context) error {
		outcomes, err := t.runScenarios(ctx, firstProofTimeout, program, mutant.Mutant{Name: "none", Scenarios: scenarios}, "")
		if err != nil {
			return err
		}
		progress.Note(ctx, "%d scenarios are green", len(scenarios))
		return mutant.Sound(scenarios, outcomes)
	})
}

// proveOne runs the scenarios with the planted bug, and brings the sound build back. program is the sound one of the scenarios.
func (t *Testbed) proveOne(ctx context.Context, program string, bug mutant.Mutant) (outcomes []mutant.Outcome, err error) {
	err = inOrder(ctx,
		t.step("planted bug "+bug.Name, func(ctx context.Context) error {
			planted := bug.Name
			if bug.OfTestbed() {
				planted = ""
				if program, err = t.buildScenarios(ctx, &bug); err != nil {
					return err
				}
			}
			if outcomes, err = t.runScenarios(ctx, proofTimeout, program, bug, planted); err != nil {
				return err
			}
			if finding := mutant.Judge(bug, outcomes); finding.Caught {
				progress.Note(ctx, "caught by %s", strings.Join(bug.Scenarios, ", "))
			} else {
				progress.Note(ctx, "not caught: %s", finding.Problem)
			}
			return nil
		}),
		t.step("sound again", func(ctx context.Context) error {
			if bug.OfTestbed() {
				return nil
			}
			return t.restoreSound(ctx)
		}),
	)
	return outcomes, err
}

// restoreSound brings the testbed up without a planted bug, as another process would.
func (t *Testbed) restoreSound(ctx context.Context) error {
	log, err := os.OpenFile(filepath.Join(t.state.mutants(), "sound.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("open a log: %w", err)
	}
	sound, err := New(Options{Prefix: t.prefix, Root: t.root, Directory: filepath.Dir(string(t.state)), Out: log})
	if err == nil {
		err = sound.Up(ctx)
	}
	return errors.Join(err, log.Close())
}

// buildScenarios returns the program that runs the scenarios, built with the bug in it, or with none.
func (t *Testbed) buildScenarios(ctx context.Context, bug *mutant.Mutant) (string, error) {
	program, overlay := filepath.Join(t.root, "bin", "e2e.test"), []string{}
	if bug != nil {
		directory, err := binaryDirectory(t.root)
		if err != nil {
			return "", err
		}
		unlock, err := lock.Wait(ctx, directory+".lock", buildLockTimeout)
		if err != nil {
			return "", fmt.Errorf("binaries of %s: %w", t.root, err)
		}
		defer unlock()
		path, err := bug.Overlay(t.root, filepath.Join(directory, "mutant"))
		if err != nil {
			return "", err
		}
		program, overlay = filepath.Join(directory, "mutant", "e2e.test"), []string{"-overlay", path}
	}
	args := append([]string{"test", "-C", t.root, "-c", "-tags", "e2e", "-trimpath", "-buildvcs=false", "-o", program}, overlay...)
	cmd := kindexec.CommandContext(ctx, "go", append(args, scenariosPackage)...)
	cmd.SetEnv(append(os.Environ(), "CGO_ENABLED=0")...)
	if _, err := command.Run(ctx, cmd); err != nil {
		return "", fmt.Errorf("build the scenarios: %w", err)
	}
	return program, nil
}
