// Command runcshim runs between Docker and runc on hosts with a restricted capability bounding set.
//
// `docker run --privileged` and `docker exec --privileged` request every capability. If the host
// lacks one, runc fails with "unable to apply caps: operation not permitted". The shim therefore
// removes the capabilities that are not in its own bounding set from the bundle's config.json, or
// from the process file of exec. If CAP_SYS_RESOURCE is one of them, it also raises a negative
// oom_score_adj to 0. It then executes runc with the same arguments.
//
// The shim uses only runc's command line and the OCI runtime specification. Nothing in it is
// specific to Docker, kind or the testbed.
package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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
// run returns only if it fails.
func run(args []string) error {
	runc, err := exec.LookPath("runc")
	if err != nil {
		return fmt.Errorf("looking for runc: %w", err)
	}
	if path := findDocument(args); path != "" {
		missing, err := missingCapabilities()
		if err != nil {
			return err
		}
		// A missing document is not an error here: runc reports it.
		if err := restrictFile(path, missing); err != nil && !errors.Is(err, fs.ErrNotExist) {
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
func restrictFile(path string, missing map[string]bool) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	before, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	after, changed, err := restrict(before, missing)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if !changed {
		return nil
	}
	return file.Replace(path, after, info.Mode().Perm())
}

// findDocument returns the path of the JSON file from which runc reads the process to start, or ""
// if runc reads none for args. It knows the two commands with which containerd's shim starts
// programs.
func findDocument(args []string) string {
	if bundle := valueAfter(args, "create", "--bundle"); bundle != "" {
		return filepath.Join(bundle, "config.json")
	}
	return valueAfter(args, "exec", "--process")
}

// valueAfter returns the value of the command's flag, or "" if args do not contain it.
func valueAfter(args []string, command, flag string) string {
	rest := args[slices.Index(args, command)+1:]
	i := slices.Index(rest, flag)
	if len(rest) == len(args) || i < 0 || i+1 == len(rest) {
		return ""
	}
	return rest[i+1]
}
