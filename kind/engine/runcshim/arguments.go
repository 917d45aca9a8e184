package main

import (
	"path/filepath"
	"slices"
	"strings"
)

// document is a JSON file that defines the process for runc to run.
type document struct {
	path string
	kind documentKind
}

type documentKind int

const (
	// specDocument is a bundle's config.json. The process is one of its fields.
	specDocument documentKind = iota
	// processDocument is the file of exec --process: the process itself.
	processDocument
)

// globalValueFlags are runc's global flags that take a value as a separate argument.
var globalValueFlags = []string{"--log", "--log-format", "--root", "--rootless", "--criu"}

// findDocument returns the document that runc reads for args, and false for commands without one.
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

// splitCommand returns runc's command and the arguments after it.
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

// flagValue returns the value of the first of the flags in args, as `flag value` or `flag=value`.
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
