package contender

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/gardener-extensions/registry-cache/bench/daemon"
)

// TestConfigurations: each contender asks the line, and stores on its own volume only.
func TestConfigurations(t *testing.T) {
	site := Site{Upstream: "http://192.0.2.1:5000", Volume: "/volumes/x", Folder: "/logs"}
	listen := ports{serve: "192.0.2.2:80", debug: "192.0.2.3:81"}
	for _, name := range []string{Ours, Stock, Nginx} {
		text, _, _ := configure(name, site, listen)
		for _, want := range []string{`\b192\.0\.2\.1:5000\b`, `/volumes/x\b`, `\b192\.0\.2\.2:80\b`} {
			if !regexp.MustCompile(want).MatchString(text) {
				t.Errorf("%s: no %s in\n%s", name, want, text)
			}
		}
		if left := regexp.MustCompile(`VOLUME|FOLDER|UPSTREAM|LISTEN|%!`).FindString(text); left != "" {
			t.Errorf("%s: %s is left in\n%s", name, left, text)
		}
	}
}

func TestDirect(t *testing.T) {
	direct, err := Start(t.Context(), Direct, nil, Site{Upstream: "http://192.0.2.1"})
	if err != nil || direct.URL != "http://192.0.2.1" {
		t.Fatalf("%+v, error %v", direct, err)
	}
	usage, err := direct.Usage()
	if err != nil || usage != (Usage{}) || direct.ResetPeak() != nil || direct.Stop() != nil {
		t.Errorf("usage %+v, error %v", usage, err)
	}
}

// TestUsage: the CPU time of a child counts, as that of nginx's workers does.
func TestUsage(t *testing.T) {
	program := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n(while :; do :; done) &\ntrap 'kill $!' TERM\nwait\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	process, err := daemon.Start(t.Context(), daemon.Options{Name: "x", Program: program, Folder: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	instance := &Instance{process: process}
	t.Cleanup(func() {
		if err := instance.Stop(); err != nil {
			t.Error(err)
		}
	})
	var usage Usage
	err = wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		usage, err = instance.Usage()
		return usage.CPU > 50*time.Millisecond, err
	})
	if err != nil || usage.Peak == 0 {
		t.Errorf("usage %+v, error %v", usage, err)
	}
	if err := instance.ResetPeak(); err != nil {
		t.Error(err)
	}
}
