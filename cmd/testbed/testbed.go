package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gardener-extensions/registry-cache/internal/program"
	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/bringup"
	"github.com/gardener-extensions/registry-cache/kind/configuration"
	"github.com/gardener-extensions/registry-cache/kind/export"
	"github.com/gardener-extensions/registry-cache/kind/status"
)

func newUpCommand(options *kind.Options) *cobra.Command {
	var (
		name           string
		garden, dryRun bool
	)
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Create the testbed, or repair and update an existing one",
		Long: `Create the testbed, or repair and update an existing one. A file configures workers, IP family,
kube-proxy mode, feature gates, containerd, upstreams and the Shoot. Without a file, the testbed
keeps the previous configuration; a new one has two workers, IPv4, and caches for two of three upstreams.

A running testbed is changed in place where possible. Other changes recreate the clusters, see
docs/testbed-reference.md. --dry-run prints the configuration with its defaults.`,
		Example: "  testbed up\n  testbed up --garden\n  testbed up -f examples/testbed/testbed.yaml --dry-run\n  testbed up --dry-run > testbed.yaml",
		Args:    program.Args(cobra.NoArgs),
		PreRunE: func(cmd *cobra.Command, _ []string) (err error) {
			if cmd.Flags().Changed("garden") {
				options.Garden = &garden
			}
			options.Configuration, err = readConfiguration(name, cmd.InOrStdin())
			return program.Usage(err)
		},
		RunE: onTestbed(options, func(cmd *cobra.Command, testbed *kind.Testbed, _ []string) error {
			if dryRun {
				data, err := testbed.Config.Encode()
				_, writeErr := cmd.OutOrStdout().Write(data)
				return errors.Join(testbed.ConfigurationError(), err, writeErr)
			}
			if err := bringup.Up(cmd.Context(), testbed); err != nil {
				return err
			}
			_, err := fmt.Fprint(cmd.ErrOrStderr(), nextSteps(testbed))
			return err
		}),
	}
	cmd.Flags().StringVarP(&name, "filename", "f", "", "file with the configuration (docs/testbed-reference.md); - is standard input")
	cmd.Flags().StringVar(&options.NodeImage, "node-image", os.Getenv("NODE_IMAGE"),
		"a stock kindest/node image to use instead of the testbed's own; overrides the configuration (default $NODE_IMAGE)")
	cmd.Flags().BoolVar(&garden, "garden", false, "run Gardener's control plane in the seed; overrides the configuration")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "print the configuration with its defaults, and change nothing")
	return cmd
}

// readConfiguration reads the configuration file, and checks the manifest to which the file refers.
// For an empty name it returns nil.
func readConfiguration(name string, stdin io.Reader) (read *configuration.Testbed, err error) {
	switch name {
	case "":
		return nil, nil
	case standardInput:
		read, err = configuration.Read("standard input", ".", stdin)
	default:
		read, err = configuration.Load(name)
	}
	if err != nil {
		return nil, err
	}
	if path := read.Shoot.Manifest; path != "" {
		if _, err := readManifest(path, nil); err != nil {
			return nil, fmt.Errorf("shoot.manifest: %w", err)
		}
	}
	return read, nil
}

// nextSteps returns suggestions for the next commands. Make targets use the default testbed. For
// another prefix it suggests bin/testbed instead.
func nextSteps(t *kind.Testbed) string {
	status, down, prefix := "make status", "make down", ""
	prove := "  make e2e KEEP=1                run the scenarios, and keep the testbed\n"
	if t.Prefix != kind.DefaultPrefix {
		prefix = " --prefix " + t.Prefix
		status, down = "bin/testbed status"+prefix, "bin/testbed down"+prefix
		prove = "" // the scenarios run on the default testbed
	}
	var text strings.Builder
	fmt.Fprintf(&text, "\nThe testbed is up: %s.\n", whatIsCached(t))
	fmt.Fprintf(&text, "  %-29s  show what runs, and where each node pulls from\n%s", status, prove)
	fmt.Fprintf(&text, "  kubectl --kubeconfig %s get pods -A\n", t.Relative(t.State.ShootKubeconfig()))
	fmt.Fprintf(&text, "  kubectl --kubeconfig %s get extensions,managedresources -A\n", t.Relative(t.State.SeedKubeconfig()))
	if t.Config.Garden {
		fmt.Fprintf(&text, "  bin/testbed kubectl%s garden get shoots\n", prefix)
	}
	fmt.Fprintf(&text, "  %-29s  remove it\n\n", down)
	return text.String()
}

func whatIsCached(t *kind.Testbed) string {
	if manifest := t.Config.Shoot.Manifest; manifest != "" {
		return "the Shoot is from " + t.Relative(manifest)
	}
	if extension := t.Config.Extension; extension != nil {
		return "extension " + extension.Name + " is installed"
	}
	var parts []string
	if cached := t.CachedUpstreams(); len(cached) > 0 {
		parts = append(parts, "pulls of "+strings.Join(cached, " and ")+" go through the caches as soon as these are ready")
	}
	if direct := t.Hosts(t.Config.Direct()); len(direct) > 0 {
		parts = append(parts, "pulls of "+strings.Join(direct, " and ")+" go direct")
	}
	return strings.Join(parts, ", ")
}

func newDownCommand(options *kind.Options) *cobra.Command {
	return &cobra.Command{
		Use:   "down",
		Short: "Remove the testbed: containers, volumes, networks and processes",
		Args:  program.Args(cobra.NoArgs),
		RunE: onTestbed(options, func(cmd *cobra.Command, testbed *kind.Testbed, _ []string) error {
			return bringup.Down(cmd.Context(), testbed)
		}),
	}
}

func newStatusCommand(options *kind.Options) *cobra.Command {
	return withJSON(&cobra.Command{
		Use:   "status",
		Short: "Print the state of clusters, nodes, garden, caches and upstreams, with versions",
		Args:  program.Args(cobra.NoArgs),
		RunE: onTestbed(options, func(cmd *cobra.Command, testbed *kind.Testbed, _ []string) error {
			status, err := status.OfTestbed(cmd.Context(), testbed)
			if err != nil {
				return err
			}
			return answer(cmd, status, status.Write)
		}),
	})
}

func newDoctorCommand(options *kind.Options) *cobra.Command {
	return withJSON(&cobra.Command{
		Use:   "doctor",
		Short: "Check this machine and the Docker Engine, and print the status of the testbed",
		Args:  program.Args(cobra.NoArgs),
		RunE: onTestbed(options, func(cmd *cobra.Command, testbed *kind.Testbed, _ []string) error {
			machine, err := bringup.Inspect(cmd.Context(), testbed.Extension)
			if err != nil {
				return err
			}
			seen, err := status.OfTestbed(cmd.Context(), testbed)
			found := examination{Machine: machine.String(), Warning: machine.Warning, Problems: machine.Failures(), Testbed: seen}
			return errors.Join(answer(cmd, found, found.write), found.err(), err)
		}),
	})
}

// examination is the output of `testbed doctor`.
type examination struct {
	Machine  string            `json:"machine"`
	Warning  string            `json:"warning,omitempty"`  // about the machine
	Problems []bringup.Failure `json:"problems,omitempty"` // of the machine
	Testbed  *status.Testbed   `json:"testbed"`
}

func (e examination) write(out io.Writer) error {
	fmt.Fprintf(out, "MACHINE  %s\n", e.Machine)
	if e.Warning != "" {
		fmt.Fprintf(out, "WARNING  %s\n", e.Warning)
	}
	return e.Testbed.Write(out)
}

// err returns an environment error if the machine does not meet the requirements.
func (e examination) err() error {
	if len(e.Problems) == 0 {
		return nil
	}
	return &bringup.Failures{List: e.Problems}
}

func newExportCommand(options *kind.Options) *cobra.Command {
	return withJSON(&cobra.Command{
		Use:   "export FILE" + export.Suffix,
		Short: "Pack everything needed to find the cause of a problem into one file",
		Long: `Pack what an engineer needs into one archive, to attach to an issue: the logs of both clusters as
kind export logs collects them, Kubernetes objects and events, the access logs of the upstreams,
certs.d, units and firewall of each node, active faults and versions. Read index.md in it first. The
command also works if only parts of the testbed run. Secrets are listed without their data.

An existing file is replaced. What could not be collected is printed to standard error.`,
		Example: "  testbed export problem.tar.gz",
		Args:    program.Args(cobra.ExactArgs(1)),
		RunE: onTestbed(options, func(cmd *cobra.Command, testbed *kind.Testbed, args []string) error {
			archive, err := export.Write(cmd.Context(), testbed, args[0])
			if err != nil {
				return err
			}
			for _, missing := range archive.Missing {
				fmt.Fprintf(cmd.ErrOrStderr(), "   not collected: %s\n", missing)
			}
			return answer(cmd, archive, line(archive.Path))
		}),
	})
}
