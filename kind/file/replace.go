// Package file replaces files atomically, so that no reader sees a half-written file, not even
// after a crash. It also locks files against other processes on this machine with flock(2): the
// kernel releases a lock when its holder ends, for any reason. Callers decide what a lock protects.
package file

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Replace writes a file with this content and mode by renaming a synced temporary file. The file at
// path therefore has the old or the new content, even if this process is killed. The directory must
// exist. After an error the old file is unchanged and no temporary file remains.
func Replace(path string, content []byte, mode fs.FileMode) (err error) {
	temp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(temp.Name())
			err = fmt.Errorf("write %s: %w", path, err)
		}
	}()
	_, written := temp.Write(content)
	if err := errors.Join(written, temp.Chmod(mode), temp.Sync(), temp.Close()); err != nil {
		return err
	}
	return os.Rename(temp.Name(), path)
}
