package house

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestRelease: tools/release refuses what is no release, prints the section of the changelog, and
// creates a tag only if asked to.
func TestRelease(t *testing.T) {
	t.Parallel()
	const notes = "# Changelog\n\n## Unreleased\n\n## 0.2.0\n\n- New.\n\n## 0.1.0\n\n- Old.\n"
	for name, test := range map[string]struct {
		version, changelog string
		change             string // a command after the commit
		arguments          []string
		code               int
		says               string
		tags               string
	}{
		"dry run":         {version: "v0.2.0", changelog: notes, says: "New.", tags: ""},
		"last section":    {version: "v0.1.0", changelog: notes, says: "Old.", tags: ""},
		"tag":             {version: "v0.2.0", changelog: notes, arguments: []string{"--tag"}, says: "git push origin v0.2.0", tags: "v0.2.0"},
		"no release":      {version: "v0.2.0-dev", changelog: notes, code: 1, says: "v0.2.0-dev"},
		"no v":            {version: "0.2.0", changelog: notes, code: 1, says: "0.2.0"},
		"changed files":   {version: "v0.2.0", changelog: notes, change: "touch new", code: 1, says: "new"},
		"no section":      {version: "v0.3.0", changelog: notes, code: 1, says: "## 0.3.0"},
		"empty section":   {version: "v0.2.0", changelog: "## 0.2.0\n\n## 0.1.0\n\n- Old.\n", code: 1, says: "## 0.2.0"},
		"tag exists":      {version: "v0.2.0", changelog: notes, change: "git tag v0.2.0", code: 1, says: "raise VERSION", tags: "v0.2.0"},
		"of the tag":      {version: "v0.2.0", changelog: notes, change: "git tag v0.2.0", arguments: []string{"--check"}, says: "New.", tags: "v0.2.0"},
		"of no tag":       {version: "v0.2.0", changelog: notes, arguments: []string{"--check"}, code: 1, says: "not at this commit"},
		"unknown flag":    {version: "v0.2.0", changelog: notes, arguments: []string{"--push"}, code: 2, says: "usage"},
		"of another tag":  {version: "v0.1.0", changelog: notes, change: "git tag v0.2.0", arguments: []string{"--check"}, code: 1, says: "v0.1.0", tags: "v0.2.0"},
		"of a moved head": {version: "v0.2.0", changelog: notes, change: "git tag v0.2.0; git commit -q --allow-empty -m b", arguments: []string{"--check"}, code: 1, says: "not at", tags: "v0.2.0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			copyProgram(t, folder, "tools/release")
			for file, text := range map[string]string{"VERSION": test.version + "\n", "CHANGELOG.md": test.changelog} {
				if err := os.WriteFile(filepath.Join(folder, file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			run := func(command string) string {
				output, err := inFolder(t, folder, "bash", "-c", command).CombinedOutput()
				if err != nil {
					t.Fatalf("%s: %v: %s", command, err, output)
				}
				return strings.TrimSpace(string(output))
			}
			run("git init -q && git add . && git commit -q -m a")
			run(test.change)
			release := inFolder(t, folder, "tools/release", test.arguments...)
			output, _ := release.CombinedOutput()
			if code := release.ProcessState.ExitCode(); code != test.code || !strings.Contains(string(output), test.says) {
				t.Errorf("exit code %d and output %q, want %d and %q", code, output, test.code, test.says)
			}
			if strings.Contains(string(output), "New.") && strings.Contains(string(output), "Old.") {
				t.Errorf("the notes contain two sections: %s", output)
			}
			if tags := run("git tag"); tags != test.tags {
				t.Errorf("tags %q, want %q", tags, test.tags)
			}
			if test.tags != "" && test.arguments != nil && test.change == "" && !strings.Contains(run("git cat-file -p "+test.tags), "New.") {
				t.Error("the tag does not contain the notes")
			}
		})
	}
}

// inFolder returns a command in a folder, with an identity for git.
func inFolder(t *testing.T, folder, name string, arguments ...string) *exec.Cmd {
	t.Helper()
	if strings.Contains(name, "/") {
		name = filepath.Join(folder, name)
	}
	command := exec.CommandContext(t.Context(), name, arguments...)
	command.Dir = folder
	command.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org")
	return command
}

// TestReleaseNotes: the changelog has a section for VERSION, so that `make release` works.
func TestReleaseNotes(t *testing.T) {
	t.Parallel()
	var texts [2]string
	for i, file := range []string{"VERSION", "CHANGELOG.md"} {
		text, err := os.ReadFile(filepath.Join(root(t), file))
		if err != nil {
			t.Fatal(err)
		}
		texts[i] = strings.TrimSpace(string(text))
	}
	if version := strings.TrimPrefix(texts[0], "v"); !strings.HasSuffix(version, "-dev") && !strings.Contains(texts[1], "\n## "+version+"\n") {
		t.Errorf("CHANGELOG.md has no section ## %s", version)
	}
}

// TestDependabot: dependency updates cover every Go module of the repository.
func TestDependabot(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(root(t), ".github/dependabot.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Updates []struct {
			Ecosystem   string   `json:"package-ecosystem"`
			Directories []string `json:"directories"`
		} `json:"updates"`
	}
	if err := yaml.Unmarshal(text, &config); err != nil {
		t.Fatal(err)
	}
	var covered, modules []string
	for _, update := range config.Updates {
		if update.Ecosystem == "gomod" {
			covered = append(covered, update.Directories...)
		}
	}
	tree, err := load(os.DirFS(root(t)))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range tree {
		if filepath.Base(f.path) == "go.mod" {
			modules = append(modules, filepath.Join("/", f.dir()))
		}
	}
	slices.Sort(covered)
	slices.Sort(modules)
	if !slices.Equal(covered, modules) {
		t.Errorf(".github/dependabot.yaml updates %q, want %q", covered, modules)
	}
}
