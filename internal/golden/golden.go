// Package golden compares rendered output with golden files in testdata, and converts between
// Kubernetes objects and such files.
//
// Only tests may import the package. It must work for files with any content.
package golden

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const updateVariable = "UPDATE_GOLDEN"

// Compare fails the test unless got equals testdata/<name>. The failure shows the first difference
// and the command that updates the file. If UPDATE_GOLDEN is set, Compare first writes the file.
func Compare[T string | []byte](t testing.TB, name string, got T) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if os.Getenv(updateVariable) != "" {
		err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(got), 0o644))
		if err != nil {
			t.Fatalf("update the golden file: %v", err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v; to create it: %s", err, command())
	}
	if difference := firstDifference(string(got), string(want)); difference != "" {
		t.Errorf("%s differs in %s\nto accept: %s\ngot:\n%s", file, difference, command(), string(got))
	}
}

// firstDifference describes the first line that differs, or returns "" for equal texts.
func firstDifference(got, want string) string {
	gotLines, wantLines := slices.Collect(strings.Lines(got)), slices.Collect(strings.Lines(want))
	for i := range max(len(gotLines), len(wantLines)) {
		if g, w := lineAt(gotLines, i), lineAt(wantLines, i); g != w {
			return fmt.Sprintf("line %d: got %s, want %s", i+1, g, w)
		}
	}
	return ""
}

// lineAt quotes a line, so that a missing newline at the end is visible.
func lineAt(lines []string, i int) string {
	if i >= len(lines) {
		return "no such line"
	}
	return fmt.Sprintf("%q", lines[i])
}

// command returns the command that updates the golden files of the package under test.
func command() string {
	here, _ := os.Getwd()
	root := here
	for root != filepath.Dir(root) {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			break
		}
		root = filepath.Dir(root)
	}
	relative, _ := filepath.Rel(root, here)
	return updateVariable + "=1 go test ./" + relative
}

// CACertificate is a fixed PEM CA certificate for golden files. Its private key was not kept.
const CACertificate = `-----BEGIN CERTIFICATE-----
MIIBeDCCAR+gAwIBAgIUK1XqEpTBUn/9kYpUCXx/e1Lt0GgwCgYIKoZIzj0EAwIw
ETEPMA0GA1UEAwwGZ29sZGVuMCAXDTI2MTEyMTEyMjAxNFoYDzIxMjYxMDI4MTIy
MDE0WjARMQ8wDQYDVQQDDAZnb2xkZW4wWTATBgcqhkjOPQIBBggqhkjOPQMBBwNC
AAQTN8uF6ry0da2jD3Ex7Mhd82z5BX6BJ7mYLzEA1iEdKFa8mFBG+P8rcpnlycp3
4KgpfM9zT4FjvR74cYD5ifESo1MwUTAdBgNVHQ4EFgQUK33RJhUFIJ8n/EnQQ13m
21UhqM0wHwYDVR0jBBgwFoAUK33RJhUFIJ8n/EnQQ13m21UhqM0wDwYDVR0TAQH/
BAUwAwEB/zAKBggqhkjOPQQDAgNHADBEAiAdXHR7QEKnsTV3laKSxbNv+YZ2R06b
Q7AP3bdNjOL6XgIgUsTWvybdOlGav+EOo2R8owwfTVnDmLg4ikKXL/XtmyU=
-----END CERTIFICATE-----
`
