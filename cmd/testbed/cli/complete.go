package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
	"github.com/gardener-extensions/registry-cache/kind/fieldbugs"
	"github.com/gardener-extensions/registry-cache/kind/snapshot"
)

// names returns what an argument may be, by the arguments before it. It must not ask an engine or a
// cluster, since somebody waits for it at every Tab: what it knows of a testbed is what its files
// say. A testbed without any is the default one.
type names func(testbed *kind.Testbed, before []string) []string

// completed completes the arguments of a command. What does not begin as the word does, or was
// named before, is left out.
func completed(cmd *cobra.Command, options *kind.Options, of names) *cobra.Command {
	cmd.ValidArgsFunction = completion(options, of)
	return cmd
}

func completion(options *kind.Options, of names) cobra.CompletionFunc {
	return func(_ *cobra.Command, before []string, word string) ([]string, cobra.ShellCompDirective) {
		testbed, err := newTestbed(*options)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return slices.DeleteFunc(of(testbed, before), func(name string) bool {
			return !strings.HasPrefix(name, word) || slices.Contains(before, name)
		}), cobra.ShellCompDirectiveNoFileComp
	}
}

// completeFlag is completed for the values of a flag.
func completeFlag(cmd *cobra.Command, flag string, options *kind.Options, of names) {
	if err := cmd.RegisterFlagCompletionFunc(flag, completion(options, of)); err != nil {
		panic(err) // the command has no such flag
	}
}

// only is for a command with one argument.
func only(of names) names {
	return func(testbed *kind.Testbed, before []string) []string {
		if len(before) > 0 {
			return nil
		}
		return of(testbed, before)
	}
}

func nameBugs(*kind.Testbed, []string) []string {
	var ids []string
	for _, bug := range fieldbugs.All() {
		ids = append(ids, bug.ID, bug.Slug)
	}
	return ids
}

func nameSnapshots(testbed *kind.Testbed, _ []string) []string {
	all, _ := snapshot.List(testbed) // the command itself says what is wrong with them
	var known []string
	for _, one := range all {
		known = append(known, one.Name)
	}
	return known
}

func nameUpstreams(testbed *kind.Testbed, _ []string) []string {
	var known []string
	for _, upstream := range testbed.Config.Upstreams {
		known = append(known, upstream.Name)
	}
	return known
}

func nameWorkers(testbed *kind.Testbed, _ []string) []string {
	workers := []string{"worker"}
	for i := 2; i <= *testbed.Config.Shoot.Workers; i++ {
		workers = append(workers, fmt.Sprintf("worker%d", i))
	}
	return workers
}

// nameNodes are those of both clusters, without what all names begin with.
func nameNodes(testbed *kind.Testbed, before []string) []string {
	return append(nameWorkers(testbed, before), "control-plane", "seed-control-plane")
}

// nameFaults are the targets, and behind one its kinds.
func nameFaults(testbed *kind.Testbed, before []string) []string {
	var known []string
	switch len(before) {
	case 0:
		for _, role := range []spec.Role{spec.Upstream, spec.Cache} {
			known = append(known, targets(role, nameUpstreams(testbed, nil))...)
		}
		known = append(known, targets(spec.Node, append(nameWorkers(testbed, nil), "control-plane"))...)
		known = append(known, targets(spec.Seed, []string{spec.API})...)
		known = append(known, targets(spec.Shoot, []string{spec.API})...)
		known = append(known, string(spec.Extension))
	case 1:
		role, _, _ := strings.Cut(before[0], "/")
		for _, kind := range spec.Kinds(spec.Role(role)) {
			known = append(known, string(kind))
		}
	}
	return known
}

// nameDebuggees are what runs a program of ours.
func nameDebuggees(testbed *kind.Testbed, _ []string) []string {
	return append(targets(spec.Cache, nameUpstreams(testbed, nil)), string(spec.Extension))
}

func targets(role spec.Role, parts []string) []string {
	var all []string
	for _, part := range parts {
		all = append(all, spec.Target{Role: role, Name: part}.String())
	}
	return all
}
