package registry

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/distribution/distribution/v3/configuration"
	"github.com/sirupsen/logrus"
)

const (
	// stateFile is where distribution keeps when the time of what is stored is up, below the root of the store.
	stateFile = "scheduler-state.json"
	// defaultTTL is distribution's, for a configuration without proxy.ttl.
	defaultTTL = 7 * 24 * time.Hour
)

// expiry is an entry of the state, as distribution writes it.
type expiry struct {
	Key       string    `json:"Key"`
	Expiry    time.Time `json:"ExpiryData"`
	EntryType int       `json:"EntryType"`
}

// The types of entries.
const (
	expiryOfBlob = iota
	expiryOfManifest
)

// repairState replaces a state that a crash has left empty or half written by one that has all that is stored, as if it had been
// fetched now. Distribution would not start with the one (distribution#4478), and never collect what is stored without the other.
// It does nothing where the state is sound or missing, nothing expires, or the store is no folder.
func repairState(config *configuration.Configuration, now time.Time) error {
	ttl := defaultTTL
	if config.Proxy.TTL != nil {
		ttl = *config.Proxy.TTL
	}
	root, _ := config.Storage.Parameters()["rootdirectory"].(string)
	if config.Storage.Type() != "filesystem" || root == "" || ttl <= 0 {
		return nil
	}
	content, err := os.ReadFile(filepath.Join(root, stateFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the times of what is stored: %w", err)
	}
	broken := json.Unmarshal(content, &map[string]expiry{})
	if broken == nil {
		return nil
	}
	stored, err := storedObjects(root, now.Add(ttl))
	if err != nil {
		return fmt.Errorf("make the times of what is stored anew: %w", err)
	}
	logrus.Warnf("the times of what is stored were lost in a crash (%s: %v): %d manifests and blobs have all of theirs again", stateFile, broken, len(stored))
	return replaceState(filepath.Join(root, stateFile), stored)
}

// storedObjects finds the links of repositories to manifests and blobs.
func storedObjects(root string, until time.Time) (map[string]expiry, error) {
	stored := map[string]expiry{}
	repositories := filepath.Join(root, "docker/registry/v2/repositories")
	for kind, folders := range map[int]string{expiryOfBlob: "_layers", expiryOfManifest: "_manifests/revisions"} {
		err := filepath.WalkDir(repositories, func(path string, entry fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) && path == repositories {
				return nil // nothing was stored yet
			}
			if err != nil || entry.Name() != "link" {
				return err
			}
			digest := filepath.Dir(path)
			links := filepath.Dir(filepath.Dir(digest)) // .../<repository>/<folders>/<algorithm>/<hex>/link
			repository, found := cutSuffix(repositories, links, folders)
			if !found {
				return nil
			}
			key := repository + "@" + filepath.Base(filepath.Dir(digest)) + ":" + filepath.Base(digest)
			stored[key] = expiry{Key: key, Expiry: until, EntryType: kind}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return stored, nil
}

// cutSuffix returns the repository whose folder of links this is.
func cutSuffix(repositories, links, folders string) (string, bool) {
	relative, err := filepath.Rel(repositories, links)
	if err != nil {
		return "", false
	}
	repository, matched := relative[:max(0, len(relative)-len(folders)-1)], len(relative) > len(folders)
	return repository, matched && relative == filepath.Join(repository, folders)
}

// replaceState writes the state so that it is the old one or the new one after a crash.
func replaceState(path string, stored map[string]expiry) (err error) {
	content, err := json.Marshal(stored)
	if err != nil {
		return fmt.Errorf("encode the times of what is stored: %w", err)
	}
	temp, err := os.CreateTemp(filepath.Dir(path), "."+stateFile+"-*")
	if err != nil {
		return fmt.Errorf("write the times of what is stored: %w", err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(temp.Name())
			err = fmt.Errorf("write the times of what is stored: %w", err)
		}
	}()
	_, written := temp.Write(content)
	if err := errors.Join(written, temp.Chmod(0o644), temp.Sync(), temp.Close()); err != nil {
		return err
	}
	return os.Rename(temp.Name(), path)
}
