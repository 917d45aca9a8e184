package engine

import (
	"strings"
	"testing"
)

func TestParseInfo(t *testing.T) {
	tests := []struct {
		name, data string
		want       Engine
		err        string
	}{
		{"engine 20.10, managed",
			`{"ServerVersion":"20.10.24","DockerRootDir":"/var/lib/docker","OSType":"linux",` +
				`"Labels":["registry-cache.testbed=managed"],"Containers":3}`,
			Engine{Version: "20.10.24", DataRoot: "/var/lib/docker", Managed: true, containers: 3}, ""},
		{"a host's own engine", `{"ServerVersion":"28.2.2","OSType":"linux","Labels":["a=b"]}`,
			Engine{Version: "28.2.2"}, ""},
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
