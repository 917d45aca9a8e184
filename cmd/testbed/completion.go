package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gardener-extensions/registry-cache/cachetest/fieldbugs"
	"github.com/gardener-extensions/registry-cache/internal/program"
	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
)

var completionScripts = map[string]func(root *cobra.Command, out io.Writer) error{
	"bash": func(root *cobra.Command, out io.Writer) error { return root.GenBashCompletionV2(out, true) },
	"zsh":  (*cobra.Command).GenZshCompletion,
	"fish": func(root *cobra.Command, out io.Writer) error { return root.GenFishCompletion(out, true) },
}

func newCompletionCommand() *cobra.Command {
	return &cobra.Command{
		Use:       "completion {bash|zsh|fish}",
		Short:     "Generate a shell completion script",
		Example:   "  source <(testbed completion bash)",
		Args:      program.Args(cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs)),
		ValidArgs: []string{"bash", "zsh", "fish"},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := completionScripts[args[0]](cmd.Root(), cmd.OutOrStdout()); err != nil {
				return fmt.Errorf("completion for %s: %w", args[0], err)
			}
			return nil
		},
	}
}

// suggest returns the possible values of an argument, given the arguments before it. The function
// runs each time the user presses Tab, so it reads the files of the testbed, but does not ask the
// Docker Engine or a cluster. Without files, the testbed has the default configuration.
type suggest func(testbed *kind.Testbed, before []string) []string

// complete suggests the names that begin with the typed word and are not arguments yet.
func complete(options *kind.Options, of suggest) cobra.CompletionFunc {
	return func(_ *cobra.Command, before []string, word string) ([]string, cobra.ShellCompDirective) {
		testbed, err := kind.New(*options)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return slices.DeleteFunc(of(testbed, before), func(name string) bool {
			return !strings.HasPrefix(name, word) || slices.Contains(before, name)
		}), cobra.ShellCompDirectiveNoFileComp
	}
}

func completeFlag(cmd *cobra.Command, flag string, options *kind.Options, of suggest) {
	if err := cmd.RegisterFlagCompletionFunc(flag, complete(options, of)); err != nil {
		panic(err) // the command has no such flag
	}
}

// firstOnly makes suggestions for the first argument, and none for the arguments after it.
func firstOnly(of suggest) suggest {
	return func(testbed *kind.Testbed, before []string) []string {
		if len(before) > 0 {
			return nil
		}
		return of(testbed, before)
	}
}

func bugNames(*kind.Testbed, []string) []string {
	var all []string
	for _, bug := range fieldbugs.All() {
		all = append(append(all, bug.ID), bug.Scenarios...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func upstreamNames(testbed *kind.Testbed, _ []string) []string {
	var all []string
	for _, upstream := range testbed.Config.Upstreams {
		all = append(all, upstream.Name)
	}
	return all
}

func workerNames(testbed *kind.Testbed, _ []string) []string {
	all := []string{"worker"}
	for i := 2; i <= *testbed.Config.Shoot.Workers; i++ {
		all = append(all, fmt.Sprintf("worker%d", i))
	}
	return all
}

func nodeNames(testbed *kind.Testbed, before []string) []string {
	return append(workerNames(testbed, before), "control-plane", "seed-control-plane")
}

// faultNames returns targets for the first argument, and kinds of faults for the second.
func faultNames(testbed *kind.Testbed, before []string) []string {
	var all []string
	switch len(before) {
	case 0:
		for _, role := range []spec.Role{spec.Upstream, spec.Cache} {
			all = append(all, targets(role, upstreamNames(testbed, nil)...)...)
		}
		all = append(all, targets(spec.Node, append(workerNames(testbed, nil), "control-plane")...)...)
	case 1:
		role, _, _ := strings.Cut(before[0], "/")
		for _, kind := range spec.Kinds(spec.Role(role)) {
			all = append(all, string(kind))
		}
	}
	return all
}

func targets(role spec.Role, parts ...string) []string {
	var all []string
	for _, part := range parts {
		all = append(all, spec.Target{Role: role, Name: part}.String())
	}
	return all
}
