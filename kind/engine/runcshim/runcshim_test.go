package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestFindDocument(t *testing.T) {
	tests := []struct {
		args, want string
	}{
		{"--root /run/moby --log /l --log-format json create --bundle /b --pid-file /p id", "/b/config.json"},
		{"--systemd-cgroup create --bundle /b id", "/b/config.json"},
		{"--root /run/moby exec --process /tmp/p --detach id", "/tmp/p"},
		{"--bundle /b create id", ""},
		{"create id --bundle", ""},
		{"exec id tool", ""},
		{"kill id 9", ""},
		{"", ""},
	}
	for _, tc := range tests {
		t.Run(tc.args, func(t *testing.T) {
			if got := findDocument(strings.Fields(tc.args)); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestRestrict(t *testing.T) {
	sysResource := map[string]bool{"CAP_SYS_RESOURCE": true}
	tests := []struct {
		name      string
		data      string
		missing   map[string]bool
		want      string
		unchanged bool
	}{
		{
			name: "spec", missing: sysResource,
			data: `{"ociVersion":"1.0.2","process":{"capabilities":{"bounding":["CAP_CHOWN","CAP_SYS_RESOURCE"],"ambient":["CAP_SYS_RESOURCE"]},` +
				`"oomScoreAdj":-999,"x":1}}`,
			want: `{"ociVersion":"1.0.2","process":{"capabilities":{"ambient":[],"bounding":["CAP_CHOWN"]},"oomScoreAdj":0,"x":1}}`,
		},
		{
			name: "process", missing: sysResource,
			data: `{"args":["a"],"capabilities":{"effective":["CAP_SYS_RESOURCE","CAP_KILL"]},"rlimits":[{"hard":9223372036854775807}]}`,
			want: `{"args":["a"],"capabilities":{"effective":["CAP_KILL"]},"rlimits":[{"hard":9223372036854775807}]}`,
		},
		{
			name: "another capability is missing: the score stays", missing: map[string]bool{"CAP_BPF": true},
			data: `{"capabilities":{"permitted":["CAP_BPF"]},"oomScoreAdj":-5}`,
			want: `{"capabilities":{"permitted":[]},"oomScoreAdj":-5}`,
		},
		{name: "a positive score stays", missing: sysResource, data: `{"oomScoreAdj": 5}`, want: `{"oomScoreAdj": 5}`, unchanged: true},
		{name: "nothing is missing", data: `{"process":{"capabilities":{"bounding":["CAP_CHOWN"]}}}`,
			want: `{"process":{"capabilities":{"bounding":["CAP_CHOWN"]}}}`, unchanged: true},
		{name: "no process", missing: sysResource, data: `{"process":null}`, want: `{"process":null}`, unchanged: true},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			got, changed, err := restrict([]byte(tc.data), tc.missing)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != tc.want || changed == tc.unchanged {
				t.Errorf("changed %t, got\n%s, want\n%s", changed, got, tc.want)
			}
		})
	}
	t.Run("not JSON", func(t *testing.T) {
		if _, _, err := restrict([]byte("{"), sysResource); err == nil {
			t.Error("no error")
		}
	})
}

// TestRun executes the shim as a program. The shim must pass all arguments to runc, and runc must
// be able to read the file.
func TestRun(t *testing.T) {
	if os.Getenv("RUNCSHIM_ARGS") != "" {
		if err := run(strings.Fields(os.Getenv("RUNCSHIM_ARGS"))); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	fake := "#!/bin/sh\necho \"$@\"\ncat \"$3/config.json\"\n"
	if err := os.WriteFile(filepath.Join(dir, "runc"), []byte(fake), 0o755); err != nil {
		t.Fatal(err)
	}
	// No kernel supports CAP_NONE, so the file must remain unchanged on every host.
	config := `{"process":{"capabilities":{"bounding":["CAP_NONE"]}}}`
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=TestRun$")
	cmd.Env = append(os.Environ(), "RUNCSHIM_ARGS=create --bundle "+dir+" id", "PATH="+dir+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if want := "create --bundle " + dir + " id\n" + config; string(out) != want {
		t.Errorf("got %q, want %q", out, want)
	}
}
