package diagnostics

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gardener-extensions/registry-cache/kind/diagnostics/bundle"
	atomic "github.com/gardener-extensions/registry-cache/kind/file"
)

// keptMetrics are the metrics of a bundle that the next bundle is compared with.
type keptMetrics struct {
	At   time.Time         `json:"at"`
	Pods map[string][]byte `json:"pods"`
}

// KeepMetrics stores the metrics of a bundle in the file previous, which the next bundle is
// compared with. It replaces the file atomically. It keeps the file if the bundle has no metrics or
// on errors.
func KeepMetrics(bundleDir, previous string) error {
	now, at, err := metricsOf(filepath.Join(bundleDir, bundle.MetricsFolder))
	if err != nil || len(now) == 0 {
		return err
	}
	content, err := json.Marshal(keptMetrics{At: at, Pods: now})
	if err != nil {
		return fmt.Errorf("keep metrics: %w", err)
	}
	if err := atomic.Replace(previous, content, 0o644); err != nil {
		return fmt.Errorf("keep metrics: %w", err)
	}
	return nil
}

// readKept reads the file that KeepMetrics wrote. A missing file is not an error.
func readKept(previous string) (keptMetrics, error) {
	var kept keptMetrics
	content, err := os.ReadFile(previous)
	if errors.Is(err, fs.ErrNotExist) {
		return kept, nil
	}
	if err == nil {
		err = json.Unmarshal(content, &kept)
	}
	if err != nil {
		return keptMetrics{}, fmt.Errorf("earlier metrics: %w", err)
	}
	return kept, nil
}

// metricsOf returns the metrics of a bundle by pod, and the time of the newest file.
func metricsOf(folder string) (byPod map[string][]byte, at time.Time, err error) {
	files, err := fs.Glob(os.DirFS(folder), "*"+metricsSuffix)
	if err != nil {
		return nil, time.Time{}, err
	}
	byPod = map[string][]byte{}
	for _, name := range files {
		path := filepath.Join(folder, name)
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, at, fmt.Errorf("metrics of the bundle: %w", err)
		}
		if info, err := os.Stat(path); err == nil && info.ModTime().After(at) {
			at = info.ModTime()
		}
		byPod[strings.TrimSuffix(name, metricsSuffix)] = content
	}
	return byPod, at, nil
}
