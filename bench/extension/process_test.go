package extension

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// script writes a shell script to run instead of the extension's binary, and returns its path.
func script(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(name, []byte("#!/bin/sh\n"+text), 0o755); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestStartReportsAnEarlyEnd(t *testing.T) {
	_, err := Start(t.Context(), Options{Program: script(t, "echo no such flag >&2; exit 2"), Folder: t.TempDir()})
	if err == nil || !strings.Contains(err.Error(), "no such flag") || !strings.Contains(err.Error(), "exit status 2") {
		t.Errorf("error %v, want the output and the exit code of the process", err)
	}
}

func TestStartReportsAMissingProgram(t *testing.T) {
	if _, err := Start(t.Context(), Options{Program: "/does/not/exist", Folder: t.TempDir()}); err == nil {
		t.Error("no error")
	}
}

// TestArgumentsOverrideTheChart: the extension uses the last value of a flag.
func TestArgumentsOverrideTheChart(t *testing.T) {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.ParseErrorsAllowlist.UnknownFlags = true
	health := flags.String("health-bind-address", "", "")
	level := flags.String("log-level", "", "")
	o := Options{Arguments: []string{"--health-bind-address=:8081", "--log-level=info"}, Folder: "/folder"}
	if err := flags.Parse(arguments(o, "/folder/kubeconfig", []string{"1", "2", "3"})); err != nil {
		t.Fatal(err)
	}
	if *health != "127.0.0.1:1" || *level != "info" {
		t.Errorf("health at %s, log level %s", *health, *level)
	}
	if len(o.Arguments) != 2 {
		t.Errorf("the arguments of the chart were changed: %v", o.Arguments)
	}
}

func TestFreePorts(t *testing.T) {
	ports, err := freePorts(5)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(ports)
	if len(slices.Compact(ports)) != 5 {
		t.Errorf("ports %v", ports)
	}
}

// TestUsageOf reads the usage of this process.
func TestUsageOf(t *testing.T) {
	usage, err := usageOf(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	const mebibyte = 1 << 20
	if usage.Resident < mebibyte || usage.Peak < usage.Resident || usage.CPU < 0 {
		t.Errorf("%+v", usage)
	}
	if _, err := usageOf(1 << 30); err == nil {
		t.Error("no error for a missing process")
	}
}
