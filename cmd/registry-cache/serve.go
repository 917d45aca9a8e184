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
		Long: "Run one cache with a configuration file of distribution v3, until SIGTERM. One that has credentials, and was started\n" +
			"while its upstream did not answer, ends when the upstream wants tokens: whatever runs it must start it again.\n" +
			"As in distribution, environment variables such as REGISTRY_PROXY_REMOTEURL override the file.\n" +
			"The upstream is reached by the proxies of HTTP_PROXY, HTTPS_PROXY and NO_PROXY. Its certificate may be signed by\n" +
			"any public authority, or by one of the system (SSL_CERT_FILE, SSL_CERT_DIR).",
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
