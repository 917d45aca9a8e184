package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gardener-extensions/registry-cache/internal/registryprofile"
)

// Failover contains, in seconds, how long pulls with one version of containerd take while a cache
// fails.
type Failover struct {
	Failure    string `json:"failure"`
	Containerd string `json:"containerd"`
	// Took is the time of a pull 10 s after the failure began, and Direct is that of a direct pull.
	Direct float64 `json:"direct,omitempty"`
	Took   float64 `json:"took,omitempty"`
	// Midway is the time of a slow pull during which the failure begins, and MidwayDirect is that of a
	// slow direct pull.
	MidwayDirect float64 `json:"midwayDirect,omitempty"`
	Midway       float64 `json:"midway,omitempty"`
	// Old is like Took, but with the configuration that Gardener writes. For a pull that was given up,
	// it is OldLimit.
	Old float64 `json:"old,omitempty"`
}

// OldLimit is the time after which a pull with the old configuration is given up.
const OldLimit = 90 * time.Second

// Registry contains the seconds that pulls take through a cache whose upstream has a profile.
type Registry struct {
	Registry   string `json:"registry"`
	Containerd string `json:"containerd"`
	// Cold is the time of a pull of new content, and Warm is that of stored content.
	Cold float64 `json:"cold,omitempty"`
	Warm float64 `json:"warm,omitempty"`
	// Renewed is the time of a pull of new content after the upstream has dropped all tokens.
	Renewed float64 `json:"renewed,omitempty"`
	// Outage is the time of a pull of stored content while the upstream refuses connections.
	Outage float64 `json:"outage,omitempty"`
}

// UsesTokens reports whether clients of a registry with the profile get tokens that can expire.
func UsesTokens(profile registryprofile.Profile) bool {
	return profile.Challenge == "bearer" || profile.RedirectChallenge == "bearer" || SellsTokens(profile)
}

// SellsTokens reports whether the registry's password is a token that clients request from its API.
func SellsTokens(profile registryprofile.Profile) bool {
	return profile.Challenge == "basic" && profile.RedirectSigned
}

// read returns the results in a file, or none if the file does not exist.
func read[R any](path string) (all []R, err error) {
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(content, &all)
	}
	if err != nil {
		return nil, fmt.Errorf("read the results in %s: %w", path, err)
	}
	return all, nil
}

// Record appends a result to those in a file.
func Record[R any](path string, result R) error {
	all, err := read[R](path)
	if err != nil {
		return err
	}
	return write(path, append(all, result))
}

func write[R any](path string, all []R) error {
	content, err := json.MarshalIndent(all, "", "  ")
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o750)
	}
	if err == nil {
		err = os.WriteFile(path, append(content, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("record results in %s: %w", path, err)
	}
	return nil
}
