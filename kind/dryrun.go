package kind

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/gardener-extensions/registry-cache/kind/command"
	"github.com/gardener-extensions/registry-cache/kind/engine"
	"github.com/gardener-extensions/registry-cache/kind/fault"
	"github.com/gardener-extensions/registry-cache/kind/mutant"
	"github.com/gardener-extensions/registry-cache/kind/pull"
	"github.com/gardener-extensions/registry-cache/kind/upstream"
)

// The methods below say what their counterparts would do, one line for each thing, and change nothing. They fail for what the
// counterparts would refuse, as far as that is known beforehand, and with the same errors.

// PlanDown is for Down. What Down does not find it does not remove; so it is here.
func (t *Testbed) PlanDown(ctx context.Context) ([]string, error) {
	var lines []string
	pids, err := markedProcesses("/proc", t.prefix)
	if err != nil {
		return nil, err
	}
	for _, pid := range pids {
		lines = append(lines, fmt.Sprintf("end process %d", pid))
	}
	if found, err := engine.Attach(ctx); err != nil {
		return nil, err
	} else if found != nil {
		if err := t.checkOwner(ctx); err != nil {
			return nil, err
		}
		for _, label := range []string{
			"io.x-k8s.kind.cluster=" + t.seedName(), "io.x-k8s.kind.cluster=" + t.shootName(), upstream.Label + "=" + t.prefix,
		} {
			names, err := command.Output(ctx, "docker", "ps", "--all", "--filter", "label="+label, "--format", "{{.Names}}")
			if err != nil {
				return nil, fmt.Errorf("list the containers with label %s: %w", label, err)
			}
			for _, name := range strings.Fields(names) {
				lines = append(lines, "remove container "+name+", with its volumes")
			}
		}
		lines = append(lines, "remove the network of the clusters, and stop an engine that `up` started, if no other testbed uses them")
	}
	if _, err := os.Stat(string(t.state)); err == nil {
		lines = append(lines, "remove folder "+t.relative(string(t.state)))
	}
	return lines, nil
}

// PlanShoot is for the operations on the shoot, by the names of their commands.
func (t *Testbed) PlanShoot(ctx context.Context, name string) ([]string, error) {
	for _, verb := range []shootVerb{
		verbApply, verbReconcile, verbDisable, verbHibernate, verbWake, verbRotateStart, verbRotateComplete, verbDelete, verbMigrate, verbRestore,
	} {
		if verb.name != name {
			continue
		}
		status, err := t.ShootStatus(ctx)
		if err != nil {
			return nil, err
		}
		if err := verb.possible(status); err != nil {
			return nil, err
		}
		return []string{fmt.Sprintf("run gardenlet's flow for %s, which is %s, until: %s", status.Namespace, status.Stage, verb.step)}, nil
	}
	return nil, fmt.Errorf("there is no operation %q on the shoot", name)
}

// PlanPush is for Push.
func (t *Testbed) PlanPush(options pull.PushOptions) ([]string, error) {
	target, err := options.Target(t.upstreamHosts(), "testbed/random")
	if err != nil {
		return nil, err
	}
	repository := target.Repository
	if options.Name == "" {
		repository = "testbed/<random>"
	}
	line := fmt.Sprintf("push an image of %d random layers of %d bytes as %s/%s:%s",
		target.Layers, target.LayerBytes, target.Host, repository, target.Tag)
	if options.Base != "" {
		line += ", on the layers of " + options.Base
	}
	return []string{line}, nil
}

// PlanPull is for Pull.
func (t *Testbed) PlanPull(options pull.Options) ([]string, error) {
	plan, err := options.Plan(t.upstreamHosts(), nodeNames(t.shoot.Workers()))
	if err != nil {
		return nil, err
	}
	var lines []string
	for _, batch := range plan.Batches {
		for _, node := range batch.Nodes {
			if options.Fresh {
				lines = append(lines, fmt.Sprintf("round %d, %s: remove the image, with all content that nothing else uses", batch.Round, node))
			}
			lines = append(lines, fmt.Sprintf("round %d, %s: crictl pull %s", batch.Round, node, plan.Image.Reference))
		}
	}
	return lines, nil
}

// PlanFault is for AddFault and HoldFault.
func (t *Testbed) PlanFault(ctx context.Context, wanted fault.Fault) ([]string, error) {
	var err error
	if wanted.Target, err = t.faultTarget(ctx, wanted.Target); err != nil {
		return nil, err
	}
	injection, err := t.injection(ctx, wanted)
	if err != nil {
		return nil, err
	}
	if err := injection.Available(ctx); err != nil {
		return nil, fmt.Errorf("%s: %w", wanted.Target, err)
	}
	return []string{fmt.Sprintf("break %s: it %s", wanted.Target, wanted.Effect())}, nil
}

// PlanClearFaults is for ClearFaults.
func (t *Testbed) PlanClearFaults(ctx context.Context, ids ...string) ([]string, error) {
	active, failed := t.Faults(ctx)
	chosen, err := fault.Select(active, ids)
	if err := errors.Join(err, failed); err != nil {
		return nil, err
	}
	var lines []string
	for _, f := range chosen {
		lines = append(lines, fmt.Sprintf("clear %s: %s %s", f.ID, f.Target, f.Effect()))
	}
	return lines, nil
}

// PlanImage is for BuildImage.
func (t *Testbed) PlanImage(wanted ImageBuild) ([]string, error) {
	if err := wanted.Validate(); err != nil {
		return nil, fmt.Errorf("reference of image %s: %w", wanted.Name, err)
	}
	binary, err := developed(wanted.Name)
	if err != nil {
		return nil, err
	}
	way := ""
	if wanted.Debug {
		way = " for a debugger"
	}
	return []string{
		fmt.Sprintf("build %s%s into an image, and give it to the Docker Engine as %s", binary.Package, way, wanted.Reference),
		"put it on " + strings.Join(nodeNames(t.nodesOf(wanted.Name)), ", "),
	}, nil
}

// PlanDeleteSnapshot is for DeleteSnapshot.
func (t *Testbed) PlanDeleteSnapshot(name string) ([]string, error) {
	if _, err := t.snapshotStore().Get(name); err != nil {
		return nil, err
	}
	return []string{"delete snapshot " + name}, nil
}

// PlanMutant is for Up after Plant, and PlanProof for ProveScenarios.
func PlanMutant(name string) ([]string, error) {
	if name == "" {
		return []string{"build what ships from the sources as they are", "bring the testbed to its first state"}, nil
	}
	bug, err := plantable(name)
	if err != nil {
		return nil, err
	}
	return []string{
		"build what ships with one line of " + bug.File + " replaced:", "- " + bug.Line, "+ " + bug.Replacement,
		"bring the testbed to its first state with that",
	}, nil
}

// PlanProof is for ProveScenarios: the runs, as somebody would type them.
func (t *Testbed) PlanProof(bugs []mutant.Mutant) []string {
	lines := []string{runOf(mutant.ScenariosOf(bugs)) + "  # must be green"}
	for _, bug := range bugs {
		run := runOf(bug.Scenarios) + " MUTANT=" + bug.Name
		if bug.OfTestbed() {
			run = runOf(bug.Scenarios) + "  # built with the bug " + bug.Name + ","
		} else {
			run += "  #"
		}
		lines = append(lines, run+" must be red", "make up")
	}
	return lines
}

func runOf(scenarios []string) string {
	return "make e2e KEEP=1 RUN='^(" + strings.Join(scenarios, "|") + ")$'"
}
