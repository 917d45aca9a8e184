package main

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/gardener-extensions/registry-cache/internal/program"
)

var (
	documented   = regexp.MustCompile(`(?m)^\$ bin/testbed +(.*)$|^(?:\$ )?testbed +(.*)$|^[a-z]+[0-9]*=\$\(testbed +(.*)\)$`)
	substitution = regexp.MustCompile(`"?\$\([^)]*\)"?|'[^']*'|"(?:[^"\\]|\\.)*"`)
)

// TestDocumentedCommands: every testbed command line in a document has a valid command, valid flags
// and valid arguments.
func TestDocumentedCommands(t *testing.T) {
	documents, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, document := range append(documents, "../../README.md") {
		content, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range documented.FindAllStringSubmatch(string(content), -1) {
			found++
			if err := parse(match[1] + match[2] + match[3]); err != nil {
				t.Errorf("%s: %s: %v", filepath.Base(document), match[0], err)
			}
		}
	}
	if found == 0 {
		t.Fatal("no command line found in the documents")
	}
}

func TestParseFindsMistakes(t *testing.T) {
	for _, line := range []string{"destroy", "pull", "pull $(testbed push) --fast", "fault add cache/alpha", "shoot sleep"} {
		if err := parse(line); err == nil {
			t.Errorf("%q is accepted", line)
		}
	}
	for _, line := range []string{"pull $(bin/testbed push --upstream beta) --all", "status | head -3", "exec worker -- bash -c 'ls /'", "shoot apply -f - <shoot.yaml", `pull "$image" --all`, `exec worker -- bash -c "a \"b c\" $d"`} {
		if err := parse(line); err != nil {
			t.Errorf("%q: %v", line, err)
		}
	}
}

// parse checks a command line without running it. It drops shell syntax: substitutions, quotes,
// pipes and redirections.
func parse(line string) error {
	line = substitution.ReplaceAllString(line, "word")
	for _, shell := range []string{" | ", " >", " <", " && ", " # ", " & ", "; "} {
		line, _, _ = strings.Cut(line, shell)
	}
	root := newCommand(program.Streams{Out: io.Discard, Err: io.Discard})
	cmd, rest, err := root.Find(strings.Fields(line))
	if err != nil {
		return err
	}
	if err := cmd.ParseFlags(rest); err != nil {
		return err
	}
	if cmd.HasSubCommands() && cmd.Flags().NArg() == 0 {
		return cobra.NoArgs(cmd, []string{"a verb is missing"})
	}
	if cmd.HasSubCommands() {
		return cobra.NoArgs(cmd, cmd.Flags().Args())
	}
	return cmd.Args(cmd, cmd.Flags().Args())
}
