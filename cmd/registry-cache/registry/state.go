package registry

import (
	"context"
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
	// leftTemp and leftTempOfOurs match what a kill leaves of the file in which a state is written before it is renamed.
	leftTemp       = stateFile + ".*.tmp"
	leftTempOfOurs = "." + stateFile + "-*"
	// defaultTTL is distribution's, for a configuration without proxy.ttl.
	defaultTTL = 7 * 24 * time.Hour
	// repairLimit is how long a start waits for the links of a store to be read; the startup probe of a cache gives it 2 minutes.
	repairLimit = 20 * time.Second
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

// repairState gives everything that is stored its entry in the state, before distribution reads it. Distribution saves the state every
// five seconds: what was stored after the last save before a crash would never be collected. And it does not start with a state that
// is empty or cut (distribution#4478); such a one is made anew.
//
// It keeps a cache from starting in no case: what goes wrong is logged. Where a state can neither be used nor removed, nothing expires
// until the next start; one that cannot even be read may be right, and stays. It does nothing where nothing expires, or the store is no
// folder.
func repairState(ctx context.Context, config *configuration.Configuration, now time.Time) {
	ttl := defaultTTL
	if config.Proxy.TTL != nil {
		ttl = *config.Proxy.TTL
	}
	root := storeFolder(config)
	if config.Proxy.RemoteURL == "" || root == "" || ttl <= 0 {
		return
	}
	if !(repair{root: root, ttl: ttl, now: now, limit: repairLimit}).run(ctx) {
		config.Proxy.TTL = new(time.Duration(0)) // distribution does not read the state then
	}
}

// repair is the repair of the state of one store.
type repair struct {
	root       string
	ttl, limit time.Duration
	now        time.Time
}

// run returns whether distribution can start with the state.
func (r repair) run(ctx context.Context) bool {
	for _, pattern := range []string{leftTemp, leftTempOfOurs} {
		left, _ := filepath.Glob(filepath.Join(r.root, pattern)) // the error is about the pattern
		for _, file := range left {
			_ = os.Remove(file) // it costs a bit of space, nothing else
		}
	}
	file := filepath.Join(r.root, stateFile)
	content, err := os.ReadFile(file)
	missing := errors.Is(err, fs.ErrNotExist)
	if err != nil && !missing {
		logrus.Errorf("%s cannot be read (%v), but what it says may be right, so it stays: the cache serves, and collects nothing until it "+
			"is started when it can be read. Remove it if it never can", stateFile, err)
		return false
	}
	entries, broken := map[string]*expiry{}, error(nil)
	if !missing {
		entries, broken = parseState(content)
	}
	if broken != nil {
		// First, for a full volume has no room for another one; without any, the next start finds the same entries as this one.
		if err := os.Remove(file); err != nil {
			logrus.Errorf("%s is of no use (%v) and cannot be removed (%v): the cache serves, and collects nothing until it is started "+
				"with a volume that can be written", stateFile, broken, err)
			return false
		}
		logrus.Warnf("%s was of no use, as after a crash (%v): it is made anew of what is stored, nothing is to be done", stateFile, broken)
	}
	added := r.addMissing(ctx, entries)
	if added == 0 && broken == nil {
		return true
	}
	if err := replaceState(file, entries); err != nil {
		logrus.Warnf("%s cannot be written: %v. The cache serves all the same; %d stored objects are collected only after a start with room "+
			"on the volume", stateFile, err, added)
		return true
	}
	logrus.Infof("%d stored objects were not in %s, as after a crash: they expire within %s, nothing is to be done", added, stateFile, r.ttl)
	return true
}

// parseState returns the entries of a state; none with the error, which says why distribution would not start with it.
func parseState(content []byte) (map[string]*expiry, error) {
	entries := map[string]*expiry{}
	err := json.Unmarshal(content, &entries)
	if err == nil && entries == nil {
		err = errors.New("null has no entries") // distribution panics when it adds one
	}
	for key, entry := range entries {
		if err == nil && entry == nil {
			err = fmt.Errorf("the entry %q is null", key) // distribution panics at its start
		}
	}
	if err != nil {
		return map[string]*expiry{}, err
	}
	return entries, nil
}

// replaceState writes the state so that it is the old one or the new one after a crash, and nothing lies beside it after an error.
func replaceState(path string, entries map[string]*expiry) (err error) {
	content, err := json.Marshal(entries)
	if err != nil {
		return err
	}
	temp, err := os.CreateTemp(filepath.Dir(path), leftTempOfOurs)
	if err != nil {
		return err
	}
	_, written := temp.Write(content)
	if err := errors.Join(written, temp.Chmod(0o644), temp.Sync(), temp.Close()); err != nil {
		return errors.Join(err, os.Remove(temp.Name()))
	}
	if err := os.Rename(temp.Name(), path); err != nil {
		return errors.Join(err, os.Remove(temp.Name()))
	}
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
