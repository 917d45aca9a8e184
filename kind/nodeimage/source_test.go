package nodeimage

import (
	"strings"
	"testing"
)

func TestParseLocation(t *testing.T) {
	tests := []struct {
		name, lines string
		want        source
		err         string
	}{
		{"both", ownModule + "\t\t/src\n" + kindModule + "\tv0.33.0\t/mod/kind\n",
			source{modules: "/src/kind/nodeimage/modules", kindDir: "/mod/kind", kindVersion: "v0.33.0"}, ""},
		{"kind not downloaded", ownModule + "\t\t/src\n" + kindModule + "\tv0.33.0\t\n", source{}, kindModule + " is not on this machine: run `go mod download`"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := parseLocation(tt.lines)
			if got != tt.want || (err == nil) != (tt.err == "") || (err != nil && !strings.Contains(err.Error(), tt.err)) {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

func TestLocateOutsideTheRepository(t *testing.T) {
	if _, err := locate(t.Context(), t.TempDir()); err == nil || !strings.Contains(err.Error(), "run this inside the repository") {
		t.Errorf("got %v", err)
	}
}

func TestParseDownload(t *testing.T) {
	if dir, err := parseDownload(`{"Path": "k8s.io/kubernetes", "Dir": "/mod/kubernetes"}`); dir != "/mod/kubernetes" || err != nil {
		t.Errorf("got %q, %v", dir, err)
	}
	if _, err := parseDownload("go: not found"); err == nil {
		t.Error("invalid JSON gives no error")
	}
}
