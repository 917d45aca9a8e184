package snapshot

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// saveFile stores a snapshot with two volumes: one with the content, and an empty one.
func saveFile(t *testing.T, s Store, name, content string) *Snapshot {
	t.Helper()
	draft, err := s.Begin(name)
	if err != nil {
		t.Fatal(err)
	}
	defer draft.Discard()
	if err := draft.Add(Volume{Claim: "claim-b", Upstream: "b.test"}, write(content)); err != nil {
		t.Fatal(err)
	}
	if err := draft.Add(Volume{Claim: "claim-a", Upstream: "a.test"}, write("")); err != nil {
		t.Fatal(err)
	}
	saved, err := draft.Commit()
	if err != nil {
		t.Fatal(err)
	}
	return saved
}

func write(content string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, content)
		return err
	}
}

func names(t *testing.T, s Store) []string {
	t.Helper()
	all, err := s.List()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, one := range all {
		names = append(names, one.Name)
	}
	return names
}

func TestStore(t *testing.T) {
	s := Store(filepath.Join(t.TempDir(), "testbed.snapshots"))
	if got := names(t, s); len(got) > 0 {
		t.Errorf("a missing store has %v", got)
	}
	saved := saveFile(t, s, "one", "content")
	if saved.Bytes() != 7 || saved.Volumes[0].Claim != "claim-a" {
		t.Errorf("saved %+v, want 7 bytes, and volumes by claim", saved)
	}
	got, err := s.Get("one")
	if err != nil || !reflect.DeepEqual(got, saved) {
		t.Fatalf("got %+v, %v, want %+v", got, err, saved)
	}
	if err := s.Verify(got); err != nil {
		t.Errorf("unchanged snapshot: %v", err)
	}
	archive, err := s.Open("one", got.Volumes[1])
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	if content, err := io.ReadAll(archive); string(content) != "content" || err != nil {
		t.Errorf("content %q, %v", content, err)
	}
	if missing := got.Missing([]string{"claim-b"}); !reflect.DeepEqual(missing, []string{"claim-a"}) {
		t.Errorf("missing %v, want claim-a", missing)
	}

	var exists *ExistsError
	if _, err := s.Begin("one"); !errors.As(err, &exists) {
		t.Errorf("name in use: %v, want an ExistsError", err)
	}
	saveFile(t, s, "two", "")
	var unknown *UnknownError
	if _, err := s.Get("three"); !errors.As(err, &unknown) || !reflect.DeepEqual(unknown.Names, []string{"one", "two"}) {
		t.Errorf("unknown name: %v, want an UnknownError with one and two", err)
	}
	if err := s.Delete("one"); err != nil {
		t.Fatal(err)
	}
	if got := names(t, s); !reflect.DeepEqual(got, []string{"two"}) {
		t.Errorf("after one was deleted: %v", got)
	}
	if err := s.Delete("two"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(string(s)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the empty store remains: %v", err)
	}
}

// TestDraft checks that a draft is not a snapshot, and that the next Begin removes it.
func TestDraft(t *testing.T) {
	s := Store(t.TempDir())
	killed, err := s.Begin("one")
	if err != nil {
		t.Fatal(err)
	}
	if err := killed.Add(Volume{Claim: "claim-a"}, write("half")); err != nil {
		t.Fatal(err)
	}
	if got := names(t, s); len(got) > 0 {
		t.Errorf("a draft is listed: %v", got)
	}
	saveFile(t, s, "one", "whole")
	left, err := filepath.Glob(filepath.Join(string(s), ".new-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}

	// A killed Delete has removed only the description.
	if err := os.Remove(filepath.Join(string(s), "one", "snapshot.json")); err != nil {
		t.Fatal(err)
	}
	if got := saveFile(t, s, "one", "again"); got.Bytes() != 5 {
		t.Errorf("got %+v", got)
	}
}

func TestAddFails(t *testing.T) {
	s := Store(t.TempDir())
	draft, err := s.Begin("one")
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("the node is gone")
	err = draft.Add(Volume{Claim: "claim-a"}, func(w io.Writer) error {
		_, _ = io.WriteString(w, "half")
		return broken
	})
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), "claim-a") {
		t.Errorf("error %v, want one that names the volume", err)
	}
	draft.Discard()
	if entries, err := os.ReadDir(string(s)); err != nil || len(entries) > 0 {
		t.Errorf("left: %v, %v", entries, err)
	}
}

func TestVerifyDetectsChanges(t *testing.T) {
	for name, change := range map[string]string{"other bytes": "CONTENT", "longer": "content!", "shorter": "conte"} {
		t.Run(name, func(t *testing.T) {
			s := Store(t.TempDir())
			saved := saveFile(t, s, "one", "content")
			if err := os.WriteFile(filepath.Join(string(s), "one", "claim-b.tar"), []byte(change), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := s.Verify(saved); err == nil || !strings.Contains(err.Error(), "claim-b: its archive has changed") {
				t.Errorf("error %v", err)
			}
		})
	}
	s := Store(t.TempDir())
	saved := saveFile(t, s, "one", "content")
	if err := os.Remove(filepath.Join(string(s), "one", "claim-b.tar")); err != nil {
		t.Fatal(err)
	}
	if err := s.Verify(saved); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without its archive: %v", err)
	}
}

func TestOtherVersion(t *testing.T) {
	s := Store(t.TempDir())
	saveFile(t, s, "one", "")
	path := filepath.Join(string(s), "one", "snapshot.json")
	if err := os.WriteFile(path, []byte(`{"version": 2, "name": "one"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get("one"); err == nil || !strings.Contains(err.Error(), "version 2") {
		t.Errorf("error %v", err)
	}
}

func TestCheckName(t *testing.T) {
	for name, good := range map[string]bool{
		"a": true, "before-the-fault": true, "v1.2": true, strings.Repeat("a", 40): true,
		"": false, "..": false, "a/b": false, "../a": false, "a..b": false, "-a": false, "a-": false, ".new-1": false, "A": false, "a b": false,
		strings.Repeat("a", 41): false,
	} {
		if err := CheckName(name); (err == nil) != good {
			t.Errorf("%q: %v", name, err)
		}
	}
}
