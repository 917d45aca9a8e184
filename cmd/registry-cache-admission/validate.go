package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/gardener-extensions/registry-cache/internal/program"
	"github.com/gardener-extensions/registry-cache/webhook/shoot"
)

const validateHelp = `Validate Shoots as the webhook in the garden does, but without a cluster.

Each mistake is one line on standard output: the path of the field, a colon and the reason. The exit code is 0 if all
Shoots are valid, 1 if one is not, and 2 if a file cannot be read, contains no Shoot, or is ambiguous.

Files may contain several documents. References in spec.resources of a Shoot resolve to the Secrets in these files and
in the --resources folder. Documents of other kinds are skipped. A missing Secret is a mistake if --resources is given,
and otherwise its check is skipped.

The Shoot in --old and Secrets are found by namespace and name. An object without a namespace is found by its name
alone, which must then be unique.`

type validateOptions struct {
	files     []string
	old       string
	resources string
}

func newValidateCommand(std program.Streams, stdin io.Reader) *cobra.Command {
	options := validateOptions{}
	cmd := &cobra.Command{
		Use:   "validate -f FILE [--old FILE] [--resources FOLDER]",
		Short: "Validate Shoots in files",
		Long:  validateHelp,
		Example: `  registry-cache-admission validate -f shoot.yaml
  git show main:shoot.yaml | registry-cache-admission validate -f shoot.yaml --old -
  kubectl get shoots -A -o yaml | registry-cache-admission validate -f -`,
		Args: program.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return options.run(cmd.Context(), std, stdin)
		},
	}
	cmd.Flags().StringArrayVarP(&options.files, "filename", "f", nil, "file with Shoots, - for standard input; repeatable")
	cmd.Flags().StringVar(&options.old, "old", "",
		"file with the current Shoots, - for standard input; a Shoot that it lacks is checked as a new one")
	cmd.Flags().StringVar(&options.resources, "resources", "", "folder with the referenced Secrets in .yaml, .yml and .json files")
	return cmd
}

func (o validateOptions) run(ctx context.Context, std program.Streams, stdin io.Reader) error {
	if len(o.files) == 0 {
		return program.Usage(errors.New("no file given: name a file with Shoots, such as -f shoot.yaml"))
	}
	// Standard input is empty when read again: with an empty --old, every Shoot would count as new.
	names := append([]string{o.old}, o.files...)
	if first := slices.Index(names, standardInput); first >= 0 && slices.Contains(names[first+1:], standardInput) {
		return program.Usage(errors.New("standard input can be read only once: use - for one of -f and --old, and files for the others"))
	}
	input, old, err := o.read(std, stdin)
	if err != nil {
		return program.Usage(err)
	}
	if len(input.shoots) == 0 {
		return program.Usage(fmt.Errorf("no Shoot of apiVersion %s in %v", gardencorev1beta1.SchemeGroupVersion, o.files))
	}
	var results []result
	for _, candidate := range input.shoots {
		result, err := o.check(ctx, candidate, input, old, std.Err)
		if err != nil {
			return program.Usage(fmt.Errorf("check Shoot %s: %w", qualified(candidate), err))
		}
		results = append(results, result)
	}
	return report(results, std)
}

type result struct {
	name     string
	mistakes field.ErrorList
}

// check validates a Shoot against the same Shoot in --old. It writes a note for each skipped check.
// It returns an error if several Shoots or Secrets match.
func (o validateOptions) check(ctx context.Context, candidate *gardencorev1beta1.Shoot, input, old *documents, notes io.Writer) (result, error) {
	before, err := match(old.shoots, candidate.Namespace, candidate.Name)
	if err != nil {
		return result{}, fmt.Errorf("look for it in %s: %w", o.old, err)
	}
	switch {
	case before != nil && candidate.Namespace == "":
		candidate.Namespace = before.Namespace
	case before == nil && o.old != "":
		fmt.Fprintf(notes, "Shoot %s is not in %s: checked as a new one\n", qualified(candidate), o.old)
	}
	secrets := &secretsOfFiles{secrets: input.secrets, complete: o.resources != "", notes: notes}
	mistakes := shoot.Check(ctx, candidate, before, secrets.get)
	return result{qualified(candidate), mistakes}, secrets.ambiguous
}

// report prints mistakes, and prints their number per Shoot to standard error. It returns an error
// if there are mistakes.
func report(results []result, std program.Streams) error {
	mistakes, marks := 0, map[bool]string{true: "✓", false: "✗"}
	for _, result := range results {
		fmt.Fprintf(std.Err, "%s Shoot %s: %s\n", marks[len(result.mistakes) == 0], result.name, count(len(result.mistakes)))
		for _, mistake := range result.mistakes {
			fmt.Fprintln(std.Out, shoot.Text(mistake))
		}
		mistakes += len(result.mistakes)
	}
	if mistakes > 0 {
		return fmt.Errorf("%s found", count(mistakes))
	}
	return nil
}

// read returns the documents of the files and the resource folder, and those of --old.
func (o validateOptions) read(std program.Streams, stdin io.Reader) (input, old *documents, err error) {
	input, old = &documents{}, &documents{}
	for _, file := range o.files {
		if err := input.readFile(file, stdin, std.Err); err != nil {
			return nil, nil, err
		}
	}
	if o.resources != "" {
		if err := input.readFolder(o.resources); err != nil {
			return nil, nil, err
		}
	}
	if o.old != "" {
		if err := old.readFile(o.old, stdin, io.Discard); err != nil {
			return nil, nil, err
		}
	}
	return input, old, nil
}

func count(mistakes int) string {
	switch mistakes {
	case 0:
		return "valid"
	case 1:
		return "1 mistake"
	default:
		return fmt.Sprintf("%d mistakes", mistakes)
	}
}
