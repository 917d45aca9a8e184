package main

import (
	"os"

	"github.com/gardener-extensions/registry-cache/cmd/testbed/cli"
	"github.com/gardener-extensions/registry-cache/internal/program"
)

func main() { os.Exit(program.Main(cli.New)) }
