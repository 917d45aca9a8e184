package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
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

// run restricts the document of args and replaces this process with runc. It returns only on
// failure.
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
		// Let runc report a missing document.
		if err := restrictFile(doc, missing); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := syscall.Exec(runc, append([]string{runc}, args...), os.Environ()); err != nil {
		return fmt.Errorf("executing %s: %w", runc, err)
	}
	return nil
}

// missingCapabilities returns the capabilities, named as in the OCI runtime specification, that the
// bounding set lacks.
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
	after, changed, err := restrict(before, doc.kind, missing)
	if err != nil {
		return fmt.Errorf("%s: %w", doc.path, err)
	}
	if !changed {
		return nil
	}
	return file.Replace(doc.path, after, info.Mode().Perm())
}
