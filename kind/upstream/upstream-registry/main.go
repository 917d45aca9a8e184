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

	"github.com/gardener-extensions/registry-cache/kind/upstream/ecr"
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
	flags := flag.NewFlagSet(args[0], flag.ExitOnError)
	switch args[0] {
	case "serve":
		return serve(ctx, flags, args[1:])
	case "proxy":
		address := flags.String("address", ":3128", "address to listen on")
		_ = flags.Parse(args[1:])
		proxy := &http.Server{Addr: *address, Handler: newProxy(ctx, os.Stdout), ReadHeaderTimeout: time.Minute}
		return server.Serve(ctx, proxy, proxy.ListenAndServe)
	case "replace-ecr":
		path := flags.String("file", server.ECRFile, "file with the access to ECR to replace with standard input")
		_ = flags.Parse(args[1:])
		return ecr.Replace(*path, os.Stdin)
	case "replace-faults":
		path := flags.String("file", server.FaultsFile, "faults file to replace with standard input")
		_ = flags.Parse(args[1:])
		return server.ReplaceFaults(*path, os.Stdin)
	default:
		return fmt.Errorf("unknown command %q: want serve, proxy, replace-ecr or replace-faults", args[0])
	}
}

func serve(ctx context.Context, flags *flag.FlagSet, args []string) error {
	config := server.Config{}
	flags.StringVar(&config.HTTP, "http", ":80", "address for plain HTTP")
	flags.StringVar(&config.HTTPS, "https", ":443", "address for HTTPS")
	flags.StringVar(&config.Certificate, "certificate", server.Certificate, "PEM file of the certificate chain")
	flags.StringVar(&config.Key, "key", server.Key, "PEM file of the private key")
	flags.StringVar(&config.Storage, "storage", server.Storage, "directory of the images")
	flags.StringVar(&config.Faults, "faults", server.FaultsFile, "file with the faults to inject; it may be missing")
	flags.StringVar(&config.Sites.Sibling, "sibling", "", "another name of the server, in the same domain, for profiles")
	flags.StringVar(&config.Sites.Foreign, "foreign", "", "another name of the server, in another domain, for profiles")
	flags.StringVar(&config.ECR, "ecr", server.ECRFile, "file with an access to ECR; it may be missing")
	_ = flags.Parse(args)
	return server.Run(ctx, config, os.Stdout)
}
