package report

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// The files that Write makes.
const (
	SummaryFile = "summary.json"
	JUnitFile   = "junit.xml"
)

// Write renders the report into dir, which is made if it is not there. Each file is replaced as a whole: written beside
// its name, synced and renamed. One file that cannot be written does not keep the other from being written.
func (r *Report) Write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("cannot make the folder for the report: %w", err)
	}
	summary, summaryErr := r.Summary()
	junit, junitErr := r.JUnit()
	return errors.Join(summaryErr, junitErr,
		replace(filepath.Join(dir, SummaryFile), summary),
		replace(filepath.Join(dir, JUnitFile), junit),
	)
}

func replace(path string, data []byte) (err error) {
	temp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(temp.Name())
			err = fmt.Errorf("cannot write %s: %w", path, err)
		}
	}()
	_, writeErr := temp.Write(data)
	if err := errors.Join(writeErr, temp.Chmod(0o644), temp.Sync(), temp.Close()); err != nil {
		return err
	}
	return os.Rename(temp.Name(), path)
}
