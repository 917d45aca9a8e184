package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fakeDocker puts a docker command first on the PATH that knows one network, represented by a file.
// Only the engine is fake; commands and locks are real.
func fakeDocker(t *testing.T) (network, users string) {
	t.Helper()
	dir := t.TempDir()
	network, users = filepath.Join(dir, "network"), filepath.Join(dir, "users")
	script := `#!/bin/sh
case "$1 $2" in
"network ls") [ ! -e ` + network + ` ] || echo id ;;
"network create") [ ! -e ` + network + ` ] && echo "$*" >` + network + ` ;;
"network rm") rm ` + network + ` ;;
"ps --all") [ ! -e ` + users + ` ] || cat ` + users + ` ;;
*) exit 9 ;;
esac
`
	if err := os.WriteFile(filepath.Join(dir, "docker"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	usersBefore, creationBefore := networkUsers, networkCreation
	networkUsers, networkCreation = filepath.Join(dir, "users.lock"), filepath.Join(dir, "creation.lock")
	t.Cleanup(func() { networkUsers, networkCreation = usersBefore, creationBefore })
	return network, users
}

func present(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func TestNetworkStaysWhileItIsHeld(t *testing.T) {
	network, users := fakeDocker(t)
	var releases []func()
	for range 2 { // two testbeds that start at once
		release, err := HoldNetwork(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		releases = append(releases, release)
	}
	created, err := os.ReadFile(network)
	if err != nil || !strings.Contains(string(created), "--label="+networkLabel) {
		t.Fatalf("created by %q, %v: want the testbed's label", created, err)
	}
	remove := func(when string, stays bool) {
		t.Helper()
		if err := RemoveNetwork(t.Context()); err != nil {
			t.Fatal(err)
		}
		if present(network) != stays {
			t.Errorf("%s: network exists: %t, want %t", when, present(network), stays)
		}
	}
	remove("held by two", true)
	releases[0]()
	remove("held by one", true)
	releases[1]()
	if err := os.WriteFile(users, []byte("container\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	remove("with a container", true)
	if err := os.Remove(users); err != nil {
		t.Fatal(err)
	}
	remove("unused", false)
	remove("gone", false)
}
