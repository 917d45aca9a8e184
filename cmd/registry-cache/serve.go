package main

import (
	"github.com/spf13/cobra"

	"github.com/gardener-extensions/registry-cache/cmd/registry-cache/registry"
	"github.com/gardener-extensions/registry-cache/internal/program"
)

func newServeCommand(std program.Streams) *cobra.Command {
	return &cobra.Command{
		Use:   "serve CONFIG",
		Short: "Run one cache with a configuration file of distribution v3",
		Long: "Run one cache with a configuration file of distribution v3 until SIGTERM.\n" +
			"A cache with credentials that starts while its upstream does not answer exits later if the upstream requires tokens.\n" +
			"Something, such as a pod's restart policy, must start it again.\n" +
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
