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

// Failover is how long pulls take while a cache fails, as a version of containerd sees it, in
// seconds.
type Failover struct {
	Failure    string `json:"failure"`
	Containerd string `json:"containerd"`
	// Direct and Took are the times of pulls 10 s after the beginning of the failure.
	Direct float64 `json:"direct,omitempty"`
	Took   float64 `json:"took,omitempty"`
	// Midway is the time of a slow pull during which the failure begins, MidwayDirect that of a direct
	// one.
	MidwayDirect float64 `json:"midwayDirect,omitempty"`
	Midway       float64 `json:"midway,omitempty"`
	// Old is the time of a pull as in Took, with the configuration that Gardener writes. A pull that
	// takes too long has OldLimit.
	Old float64 `json:"old,omitempty"`
}

// OldLimit is the time after which a pull with the old configuration is given up.
const OldLimit = 90 * time.Second

// Registry has the seconds of pulls through a cache whose upstream has the profile of a registry.
type Registry struct {
	Registry   string `json:"registry"`
	Containerd string `json:"containerd"`
	// Cold is a pull of what the cache does not have, Warm one of what it has.
	Cold float64 `json:"cold,omitempty"`
	Warm float64 `json:"warm,omitempty"`
	// Renewed is a pull of new content after the upstream has dropped all tokens.
	Renewed float64 `json:"renewed,omitempty"`
	// Outage is a pull of what the cache has while the upstream is away.
	Outage float64 `json:"outage,omitempty"`
}

// UsesTokens reports whether clients of a registry with the profile get tokens that can expire.
func UsesTokens(profile registryprofile.Profile) bool {
	return profile.Challenge == "bearer" || profile.RedirectChallenge == "bearer" || SellsTokens(profile)
}

// SellsTokens reports whether the password of the registry is a token, which its API sells.
func SellsTokens(profile registryprofile.Profile) bool {
	return profile.Challenge == "basic" && profile.RedirectSigned
}

// read returns the results in a file, or none if it does not exist.
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
