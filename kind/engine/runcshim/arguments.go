package main

import (
	"path/filepath"
	"slices"
	"strings"
)

// document is a file that tells runc which process to run.
type document struct {
	path string
	kind documentKind
}

type documentKind int

const (
	// specDocument is a bundle's config.json: the process is a field of it.
	specDocument documentKind = iota
	// processDocument is what exec gets by --process: the process itself.
	processDocument
)

// globalValueFlags are runc's flags before the command that take a value of their own.
var globalValueFlags = []string{"--log", "--log-format", "--root", "--rootless", "--criu"}

// findDocument returns the document that runc reads for these arguments; false for commands that read none.
func findDocument(args []string) (document, bool) {
	command, rest := splitCommand(args)
	switch command {
	case "create", "run", "restore":
		bundle := flagValue(rest, "--bundle", "-b") // runc's default is the working directory
		return document{filepath.Join(bundle, "config.json"), specDocument}, true
	case "exec":
		path := flagValue(rest, "--process", "-p")
		return document{path, processDocument}, path != ""
	default:
		return document{}, false
	}
}

// splitCommand returns runc's command and what follows it.
func splitCommand(args []string) (command string, rest []string) {
	for i := 0; i < len(args); i++ {
		if !strings.HasPrefix(args[i], "-") {
			return args[i], args[i+1:]
		}
		if slices.Contains(globalValueFlags, args[i]) {
			i++
		}
	}
	return "", nil
}

// flagValue returns the value of the first of the flags that is present, written as `flag value` or `flag=value`.
func flagValue(args []string, flags ...string) string {
	for i, arg := range args {
		name, value, inline := strings.Cut(arg, "=")
		switch {
		case arg == "--":
			return ""
		case !slices.Contains(flags, name):
		case inline:
			return value
		case i+1 < len(args):
			return args[i+1]
		}
	}
	return ""
}
