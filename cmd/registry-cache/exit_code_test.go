package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/internal/program"
)

func TestExitCodes(t *testing.T) {
	directory := t.TempDir()
	write := func(file, content string) string {
		file = filepath.Join(directory, file)
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	storage := "version: 0.1\nstorage: {filesystem: {rootdirectory: " + directory + "/volume}}\n"
	remote := "proxy: {remoteurl: http://upstream.example}\n"
	if err := os.MkdirAll(filepath.Join(directory, "volume"), 0o700); err != nil {
		t.Fatal(err)
	}
	registry := filepath.Join(directory, "registry", "docker", "registry", "v2")
	if err := os.MkdirAll(registry, 0o700); err != nil {
		t.Fatal(err)
	}
	noDriver := write("driver.yml", "version: 0.1\nstorage: {s3: {bucket: x}}\n"+remote)
	noURL := write("url.yml", storage+"proxy: {remoteurl: 'http://robot:secret@[::1'}\n")
	noAddress := write("address.yml", storage+"http: {addr: 192.0.2.1:1}\n"+remote)
	noVolume := write("volume.yml", strings.ReplaceAll(storage, "/volume", "/nope")+"http: {addr: 127.0.0.1:0}\n"+remote)
	noCache := write("registry.yml", strings.ReplaceAll(storage, "/volume", "/registry")+"http: {addr: 127.0.0.1:0}\n"+remote)
	halfTLS := write("tls.yml", storage+"http: {tls: {key: x}}\n"+remote)
	negative := write("ttl.yml", storage+"proxy: {remoteurl: http://upstream.example, ttl: -1h}\n")

	for name, test := range map[string]struct {
		args []string
		code int
		want string
	}{
		"no command":             {nil, program.ExitUsage, "name a command"},
		"unknown command":        {[]string{"server"}, program.ExitUsage, `unknown command "server"`},
		"help":                   {[]string{"--help"}, program.ExitFine, "clean"},
		"serve without config":   {[]string{"serve"}, program.ExitUsage, "serve CONFIG"},
		"serve, no such config":  {[]string{"serve", filepath.Join(directory, "nope")}, program.ExitUsage, "nope"},
		"serve, broken config":   {[]string{"serve", write("broken.yml", "version: 0.1\nhttp: [")}, program.ExitUsage, "broken.yml: yaml: line 2"},
		"serve, upstream no URL": {[]string{"serve", noURL}, program.ExitUsage, "proxy.remoteurl"},
		"serve, unknown driver": {
			[]string{"serve", noDriver}, program.ExitUsage, "line 2: unknown key s3, allowed are filesystem, delete, tag",
		},
		"serve, no volume":          {[]string{"serve", noVolume}, program.ExitEnvironment, "open the volume"},
		"serve, not a cache's":      {[]string{"serve", noCache}, program.ExitUsage, "storage.filesystem.rootdirectory: "},
		"serve, TLS without a file": {[]string{"serve", halfTLS}, program.ExitUsage, "must be set together"},
		"serve, negative TTL":       {[]string{"serve", negative}, program.ExitUsage, "proxy.ttl is -1h0m0s"},
		"serve, address":            {[]string{"serve", noAddress}, program.ExitEnvironment, "192.0.2.1:1"},
		"clean nothing":             {[]string{"clean"}, program.ExitUsage, "nothing to clean"},
		"clean a path":              {[]string{"clean", "--upstream=../x"}, program.ExitUsage, `"../x"`},
		"clean no endpoint":         {[]string{"clean", "--all", "--endpoint=10.0.0.1:5000"}, program.ExitUsage, `"10.0.0.1:5000"`},
		"clean with argument":       {[]string{"clean", "--all", "x"}, program.ExitUsage, "clean"},
		"clean, unknown flag":       {[]string{"clean", "--force"}, program.ExitUsage, "--force"},
		"clean, no root":            {[]string{"clean", "--all", "--root", filepath.Join(directory, "nope")}, program.ExitEnvironment, "--root"},
		"clean, no systemd":         {[]string{"clean", "--all", "--root", directory}, program.ExitEnvironment, "run/systemd/private"},
		"pause with argument":       {[]string{"pause", "x"}, program.ExitUsage, "pause"},
	} {
		t.Run(name, func(t *testing.T) {
			log := &syncBuffer{}
			if code := runCommand(t.Context(), log, test.args...); code != test.code {
				t.Errorf("exit code %d, want %d:\n%s", code, test.code, log)
			}
			if strings.Contains(log.String(), "secret") {
				t.Errorf("the message has the password:\n%s", log)
			}
			if !strings.Contains(log.String(), test.want) {
				t.Errorf("the message does not contain %q:\n%s", test.want, log)
			}
		})
	}
	if _, err := os.Stat(registry); err != nil {
		t.Errorf("the volume of a registry was changed: %v", err)
	}
}
