//go:build e2e

package rig

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/gardener-extensions/registry-cache/kind/bringup"
	testbedconfig "github.com/gardener-extensions/registry-cache/kind/configuration"
)

// artifacts is where the results go, below the folder in which the binary is started: the root of the repository. Those of another
// testbed than the default one have a folder of their own.
var Artifacts = "_artifacts"

// testbedConfiguration reads CONFIG, the path of a file for `testbed up -f`. Without one it is the default testbed, whatever the one
// that is there was told.
func testbedConfiguration(path string) (*testbedconfig.Testbed, error) {
	if path == "" {
		return testbedconfig.Default(), nil
	}
	Artifacts = filepath.Join(Artifacts, strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)))
	config, err := testbedconfig.Load(path)
	if err != nil {
		return nil, fmt.Errorf("CONFIG: %w", err)
	}
	return config, nil
}

// unavailable takes over that this machine cannot carry the testbed: then the scenarios are skipped, and nothing has failed.
func (s *Session) unavailable(err error) error {
	var missing *bringup.Unavailable
	if !errors.As(err, &missing) {
		return err
	}
	s.skipped = missing.Error()
	fmt.Fprintf(os.Stdout, " - skipped: %s\n", s.skipped)
	return nil
}
