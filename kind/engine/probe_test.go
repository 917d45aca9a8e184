package engine

import (
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moby/sys/capability"
)

func TestParseInfo(t *testing.T) {
	tests := []struct {
		name, data string
		want       Engine
		err        string
	}{
		{"engine 20.10 on cgroup v1, managed",
			`{"ServerVersion":"20.10.24","CgroupVersion":"1","DockerRootDir":"/var/lib/docker","OSType":"linux",` +
				`"Labels":["registry-cache.testbed=managed"],"Containers":3}`,
			Engine{Version: "20.10.24", CgroupVersion: 1, DataRoot: "/var/lib/docker", Managed: true, containers: 3}, ""},
		{"a host's own engine on cgroup v2", `{"ServerVersion":"28.2.2","CgroupVersion":"2","OSType":"linux","Labels":["a=b"]}`,
			Engine{Version: "28.2.2", CgroupVersion: 2}, ""},
		{"no answer, told with exit code 0", `{"ServerErrors":["Cannot connect to the Docker daemon"]}`, Engine{}, "Cannot connect"},
		{"windows containers", `{"ServerVersion":"28.2.2","OSType":"windows"}`, Engine{}, "want linux"},
		{"not JSON", ``, Engine{}, "decoding docker info"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			got, err := parseInfo([]byte(tc.data))
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("error is %v, want %q", err, tc.err)
				}
				return
			}
			if err != nil || *got != tc.want {
				t.Errorf("got %+v, %v; want %+v", got, err, tc.want)
			}
		})
	}
}

func TestBoundingSet(t *testing.T) {
	path := filepath.Join(t.TempDir(), "socket")
	if _, err := boundingSet(path); err == nil {
		t.Error("no error without a socket")
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	got, err := boundingSet(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []capability.Cap{capability.CAP_CHOWN, capability.CAP_SYS_RESOURCE} {
		want, err := capability.GetBound(c)
		if err != nil {
			t.Fatal(err)
		}
		if got&(1<<c) != 0 != want || c == capability.CAP_SYS_RESOURCE && sysResource("unix://"+path) != want {
			t.Errorf("bounding set %x, sysResource %v; %s in this process's set: %v", got, sysResource("unix://"+path), c, want)
		}
	}
}
