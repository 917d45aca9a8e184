// Command registry-cache runs in the shoot. Its image serves as cache and as cleaner:
//
//	registry-cache serve CONFIG    run one pull-through cache with distribution's configuration file
//	registry-cache clean           remove the configuration of caches from the node of the pod
//	registry-cache pause           wait for SIGTERM: keeps a pod running after its init container
//
// clean takes --upstream HOST[:PORT] (repeatable) or --all, --endpoint URL (repeatable) of the
// deleted caches, and --root DIR (default /host), below which the node's /etc/containerd,
// /etc/systemd/system and /run/systemd are mounted.
//
// Exit codes: 0 success, 1 failure, 2 usage error (flags, arguments, configuration file), 3
// environment error (no systemd, address in use). SIGTERM ends every command.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/gardener-extensions/registry-cache/internal/program"
	"github.com/gardener-extensions/registry-cache/nodeconfig/cleaner"
	"github.com/gardener-extensions/registry-cache/registry"
)

func main() { os.Exit(program.Main(newRootCommand)) }

func newRootCommand(std program.Streams) *cobra.Command {
	root := &cobra.Command{
		Use:   "registry-cache",
		Short: "Run a pull-through cache for one upstream registry, or clean a node that used it",
		Args:  cobra.ArbitraryArgs,
		RunE:  program.Verbs,
	}
	root.AddCommand(newServeCommand(std), newCleanCommand(std), &cobra.Command{
		Use:   "pause",
		Short: "Wait for SIGTERM, to keep a pod running after its init container",
		Args:  program.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			fmt.Fprintln(std.Err, "pausing until SIGTERM")
			<-cmd.Context().Done()
			return nil
		},
	})
	return root
}

func newServeCommand(std program.Streams) *cobra.Command {
	return &cobra.Command{
		Use:   "serve CONFIG",
		Short: "Run one cache with a configuration file of distribution v3",
		Long: "Run one cache with a configuration file of distribution v3 until SIGTERM.\n" +
			"Environment variables such as REGISTRY_PROXY_REMOTEURL override the file, as in distribution.\n" +
			"The cache reaches the upstream through the proxies in HTTP_PROXY, HTTPS_PROXY and NO_PROXY.\n" +
			"It trusts public CAs and those of the system (SSL_CERT_FILE, SSL_CERT_DIR).",
		Args: program.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			config, err := registry.Load(args[0])
			if err != nil {
				return program.Usage(err)
			}
			return registry.Serve(cmd.Context(), config, std.Err)
		},
	}
}

func newCleanCommand(std program.Streams) *cobra.Command {
	var (
		request cleaner.Request
		root    string
	)
	cmd := &cobra.Command{
		Use:   "clean",
		Short: "Remove the configuration of deleted caches from containerd on this node",
		Long: "Remove the configuration of deleted caches from containerd on this node.\n" +
			"It removes only files that the extension wrote, and those that gardener-node-agent wrote for\n" +
			"an endpoint of a deleted cache. A second run changes nothing.",
		Args: program.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := request.Validate(); err != nil {
				return program.Usage(err)
			}
			directory, err := os.OpenRoot(root)
			if err != nil {
				return program.Environment(fmt.Errorf("open the node's root directory (--root): %w", err))
			}
			defer func() { _ = directory.Close() }()
			systemd, err := cleaner.Connect(root)
			if err != nil {
				return program.Environment(err)
			}
			defer systemd.Close()
			return cleaner.Clean(cmd.Context(), cleaner.Node{Root: directory, Units: systemd, Log: std.Err}, request)
		},
	}
	cmd.Flags().StringArrayVar(&request.Upstreams, "upstream", nil, "upstream to remove, as <host>[:<port>]; repeatable")
	cmd.Flags().StringArrayVar(&request.Endpoints, "endpoint", nil, "endpoint of a deleted cache, as http(s)://<host>[:<port>]; repeatable")
	cmd.Flags().BoolVar(&request.All, "all", false, "remove the configuration of all upstreams")
	cmd.Flags().StringVar(&root, "root", "/host", "directory below which the node's directories are mounted")
	return cmd
}
