package cleaner

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

// inRoot converts an absolute path on the node to a path for os.Root.
func inRoot(file string) string {
	return strings.TrimPrefix(file, "/")
}

// removeHosts removes a hosts.toml if the extension wrote it, or if gardener-node-agent wrote it
// for one of the endpoints. Then it removes the directory if that is empty: containerd would prefer
// an empty directory to an operator's certs.d/_default. Any other file, even one that cannot be
// read, belongs to the node's owner and is not removed.
func (n Node) removeHosts(file string, endpoints []string) error {
	content, err := n.readRegular(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		n.logf("%s was not written by the extension, skipped: %v", file, err)
		return nil
	}
	if !nodeconfig.Marked(content) && !nodeconfig.TakenOver(content, endpoints) {
		n.logf("%s was not written by the extension, skipped", file)
		return nil
	}
	if err := n.remove(file); err != nil {
		return err
	}
	return n.removeIfEmpty(path.Dir(file))
}

// checkRegular returns an error if the file is a link, a folder or a named pipe, for example.
func (n Node) checkRegular(file string) error {
	info, err := n.Root.Lstat(inRoot(file))
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("not a regular file")
	}
	return err
}

func (n Node) removeRegular(file string) error {
	if err := n.checkRegular(file); err != nil {
		n.logf("%s was not written by the extension, skipped: %v", file, err)
		return nil
	}
	return n.remove(file)
}

// readRegular reads a regular file. It opens no others: opening a named pipe would block.
func (n Node) readRegular(file string) (string, error) {
	if err := n.checkRegular(file); err != nil {
		return "", err
	}
	content, err := n.Root.ReadFile(inRoot(file))
	return string(content), err
}

func (n Node) removeIfEmpty(directory string) error {
	entries, err := fs.ReadDir(n.Root.FS(), inRoot(directory))
	if errors.Is(err, fs.ErrNotExist) || len(entries) > 0 {
		return nil
	}
	if err != nil {
		return err
	}
	return n.remove(directory)
}

// removeEach calls remove for every file that matches the pattern, even after an error.
func (n Node) removeEach(pattern string, remove func(file string) error) error {
	files, err := fs.Glob(n.Root.FS(), inRoot(pattern))
	if err != nil {
		return err
	}
	var errs []error
	for _, file := range files {
		errs = append(errs, remove("/"+file))
	}
	return errors.Join(errs...)
}

func (n Node) remove(file string) error {
	err := n.Root.Remove(inRoot(file))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("remove %s from the node: %w", file, err)
	}
	n.logf("removed %s", file)
	return nil
}

// errReplaced means that another process wrote the file. A retry reads the new content.
var errReplaced = errors.New("the file was replaced meanwhile: clean again")

// replaceFile replaces the content of an existing file atomically and keeps its mode. If the
// content is not equal to old right before the rename, it changes nothing and returns errReplaced.
func replaceFile(root *os.Root, name, old, content string) (err error) {
	info, err := root.Stat(name)
	if err != nil {
		return err
	}
	temp := path.Join(path.Dir(name), "."+path.Base(name)+".registry-cache-clean")
	defer func() {
		if err != nil {
			_ = root.Remove(temp)
		}
	}()
	if err := writeAndSync(root, temp, content, info.Mode().Perm()); err != nil {
		return err
	}
	current, err := root.ReadFile(name)
	if err != nil {
		return err
	}
	if string(current) != old {
		return errReplaced
	}
	return root.Rename(temp, name)
}

func writeAndSync(root *os.Root, name, content string, mode fs.FileMode) error {
	file, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	_, err = file.WriteString(content)
	return errors.Join(err, file.Sync(), file.Close())
}
