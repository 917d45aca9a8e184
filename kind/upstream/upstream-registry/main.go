package main

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/gardener-extensions/registry-cache/kind/upstream/server"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("command missing: want serve, proxy, replace-ecr or replace-faults")
	}
	switch args[0] {
	case "serve":
		var sites server.Sites
		flags := flag.NewFlagSet(args[0], flag.ExitOnError)
		flags.StringVar(&sites.Sibling, "sibling", "", "another name of the server, in the same domain, for profiles")
		flags.StringVar(&sites.Foreign, "foreign", "", "another name of the server, in another domain, for profiles")
		_ = flags.Parse(args[1:])
		return server.Run(ctx, sites, os.Stdout)
	case "proxy":
		proxy := &http.Server{Addr: fmt.Sprintf(":%d", server.ProxyPort), Handler: newProxy(ctx, os.Stdout), ReadHeaderTimeout: time.Minute}
		return server.Serve(ctx, proxy, proxy.ListenAndServe)
	case "replace-ecr":
		return server.ReplaceECR(server.ECRFile, os.Stdin)
	case "replace-faults":
		return server.ReplaceFaults(server.FaultsFile, os.Stdin)
	default:
		return fmt.Errorf("unknown command %q: want serve, proxy, replace-ecr or replace-faults", args[0])
	}
}
