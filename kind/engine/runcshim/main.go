package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/moby/sys/capability"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "runc shim:", err)
		os.Exit(1)
	}
}

// run restricts what the arguments refer to and replaces this process by runc; it returns on failure only.
func run(args []string) error {
	runc, err := exec.LookPath("runc")
	if err != nil {
		return fmt.Errorf("looking for the real runc: %w", err)
	}
	if doc, found := findDocument(args); found {
		lacking, err := lackingCapabilities()
		if err != nil {
			return err
		}
		// A document that is not there is runc's to complain about.
		if err := restrictFile(doc, lacking); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := syscall.Exec(runc, append([]string{runc}, args...), os.Environ()); err != nil {
		return fmt.Errorf("executing %s: %w", runc, err)
	}
	return nil
}

// lackingCapabilities returns the names, as in the OCI runtime specification, of what the bounding set lacks.
func lackingCapabilities() (map[string]bool, error) {
	lacking := map[string]bool{}
	for _, c := range capability.ListKnown() {
		bound, err := capability.GetBound(c)
		if errors.Is(err, syscall.EINVAL) {
			bound, err = false, nil // unknown to this kernel
		}
		if err != nil {
			return nil, fmt.Errorf("reading the bounding set for %s: %w", c, err)
		}
		if !bound {
			lacking[specName(c)] = true
		}
	}
	return lacking, nil
}

// restrictFile rewrites the document where it asks for something that the host lacks. The file is replaced as a whole.
func restrictFile(doc document, lacking map[string]bool) error {
	info, err := os.Stat(doc.path)
	if err != nil {
		return err
	}
	before, err := os.ReadFile(doc.path)
	if err != nil {
		return err
	}
	after, changed, err := restrict(before, doc.kind, lacking)
	if err != nil {
		return fmt.Errorf("%s: %w", doc.path, err)
	}
	if !changed {
		return nil
	}
	return replace(doc.path, after, info.Mode().Perm())
}

func replace(path string, data []byte, mode fs.FileMode) error {
	temp, err := os.CreateTemp(filepath.Dir(path), ".runcshim-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(temp.Name()) }()

	_, err = temp.Write(data)
	if err := errors.Join(err, temp.Chmod(mode), temp.Close()); err != nil {
		return fmt.Errorf("writing %s: %w", temp.Name(), err)
	}
	return os.Rename(temp.Name(), path)
}
