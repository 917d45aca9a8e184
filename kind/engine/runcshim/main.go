package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/moby/sys/capability"

	"github.com/gardener-extensions/registry-cache/kind/file"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "runc shim:", err)
		os.Exit(1)
	}
}

// run restricts the document that runc would read for args, and replaces this process with runc.
// Only a failure makes run return.
func run(args []string) error {
	runc, err := exec.LookPath("runc")
	if err != nil {
		return fmt.Errorf("looking for runc: %w", err)
	}
	if doc, found := findDocument(args); found {
		missing, err := missingCapabilities()
		if err != nil {
			return err
		}
		// A missing document is not an error here: runc reports it.
		if err := restrictFile(doc, missing); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := syscall.Exec(runc, append([]string{runc}, args...), os.Environ()); err != nil {
		return fmt.Errorf("executing %s: %w", runc, err)
	}
	return nil
}

// missingCapabilities returns the capabilities that are not in the bounding set, by their names in
// the OCI runtime specification.
func missingCapabilities() (map[string]bool, error) {
	missing := map[string]bool{}
	for _, c := range capability.ListKnown() {
		bound, err := capability.GetBound(c)
		if errors.Is(err, syscall.EINVAL) {
			bound, err = false, nil // unknown to this kernel
		}
		if err != nil {
			return nil, fmt.Errorf("reading the bounding set for %s: %w", c, err)
		}
		if !bound {
			missing[specName(c)] = true
		}
	}
	return missing, nil
}

// restrictFile rewrites the document atomically if it requests a missing capability.
func restrictFile(doc document, missing map[string]bool) error {
	info, err := os.Stat(doc.path)
	if err != nil {
		return err
	}
	before, err := os.ReadFile(doc.path)
	if err != nil {
		return err
	}
	after, changed, err := restrict(before, doc.spec, missing)
	if err != nil {
		return fmt.Errorf("%s: %w", doc.path, err)
	}
	if !changed {
		return nil
	}
	return file.Replace(doc.path, after, info.Mode().Perm())
}

// document is a JSON file that defines the process for runc to run.
type document struct {
	path string
	spec bool // a bundle's config.json, which has the process in a field; else the file of exec --process
}

// globalValueFlags are runc's global flags that take a value as a separate argument.
var globalValueFlags = []string{"--log", "--log-format", "--root", "--rootless", "--criu"}

// findDocument returns the document that runc reads for args, or false if it reads none.
func findDocument(args []string) (document, bool) {
	command, rest := splitCommand(args)
	switch command {
	case "create", "run", "restore":
		bundle := flagValue(rest, "--bundle", "-b") // runc's default is the working directory
		return document{filepath.Join(bundle, "config.json"), true}, true
	case "exec":
		path := flagValue(rest, "--process", "-p")
		return document{path, false}, path != ""
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

// flagValue returns the value of the first of these flags, given as `flag value` or `flag=value`.
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
