package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/gardener-extensions/registry-cache/kind/upstream/server"
)

func main() {
	config := server.Config{}
	flag.StringVar(&config.HTTP, "http", ":80", "address for plain HTTP")
	flag.StringVar(&config.HTTPS, "https", ":443", "address for HTTPS")
	flag.StringVar(&config.Certificate, "certificate", server.Certificate, "PEM file of the certificate chain")
	flag.StringVar(&config.Key, "key", server.Key, "PEM file of the private key")
	flag.StringVar(&config.Storage, "storage", server.Storage, "directory of the images")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := server.Run(ctx, config, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
