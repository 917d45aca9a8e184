package main

import (
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/gardener-extensions/registry-cache/internal/program"
)

// TestTagsComeLast: nothing has a tag before everything is uploaded, and the last tag is that of
// the component descriptor. A second run writes nothing to the registry, and the same files.
func TestTagsComeLast(t *testing.T) {
	registry := newTestRegistry(t)
	s := newSettings(t, registry.host+"/a/b")
	s.mustPublish(t)
	writes := registry.written()
	first := slices.IndexFunc(writes, tagged)
	if first < 0 || len(writes)-first != 7 || slices.ContainsFunc(writes[first:], func(write string) bool { return !tagged(write) }) {
		t.Errorf("want three images, three charts and a descriptor tagged after all uploads, got:\n%s", strings.Join(writes, "\n"))
	}
	if last := writes[len(writes)-1]; !strings.Contains(last, "component-descriptors") {
		t.Errorf("the last tag is %s", last)
	}

	files := readFolder(t, s.out)
	registry.reset(0)
	s.mustPublish(t)
	if writes := registry.written(); len(writes) > 0 {
		t.Errorf("the second run wrote to the registry: %v", writes)
	}
	if again := readFolder(t, s.out); !reflect.DeepEqual(again, files) {
		t.Errorf("the second run wrote %v, the first %v", again, files)
	}
}

func readFolder(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, entry := range entries {
		content, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files[entry.Name()] = string(content)
	}
	return files
}

// TestPartialFailure: if the registry fails at any write, there are neither files nor, unless all
// content is uploaded, tags. The next run publishes everything.
func TestPartialFailure(t *testing.T) {
	registry := newTestRegistry(t)
	s := newSettings(t, registry.host+"/all")
	s.mustPublish(t)
	total := len(registry.written())
	for _, n := range []int{1, total / 2, total - 7, total - 6, total} { // the last seven set tags
		registry := newTestRegistry(t)
		s.registry = registry.host + "/x"
		registry.reset(n)
		code, out, err := s.publish(t)
		if code != program.ExitEnvironment || out != "" {
			t.Errorf("write %d fails: exit code %d, error %v, output %q", n, code, err, out)
		}
		if _, err := os.Stat(s.out); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("write %d fails: the folder with the files exists: %v", n, err)
		}
		if n <= total-7 && slices.ContainsFunc(registry.written(), tagged) {
			t.Errorf("write %d fails: tags were set", n)
		}
		registry.reset(0)
		if code, _, err := s.publish(t); code != program.ExitFine {
			t.Errorf("the run after a failure at write %d: %v", n, err)
		}
	}
}

// TestVersionsDoNotChange: other content under a published tag is refused, unless the tag ends in
// -dev.
func TestVersionsDoNotChange(t *testing.T) {
	registry := newTestRegistry(t)
	items := func(tag, content string) []item {
		ref, err := name.NewTag(registry.host + "/chart:" + tag)
		if err != nil {
			t.Fatal(err)
		}
		chart, err := newChart([]byte("name: chart\n"), []byte(content))
		if err != nil {
			t.Fatal(err)
		}
		return []item{{tag: ref, content: chart}}
	}
	for tag, refused := range map[string]bool{"0.1.0": true, "0.1.0-dev": false} {
		if err := push(t.Context(), items(tag, "old"), io.Discard); err != nil {
			t.Fatal(err)
		}
		err := push(t.Context(), items(tag, "new"), io.Discard)
		if (err != nil) != refused || program.ExitCode(err) == program.ExitEnvironment {
			t.Errorf("%s: error %v, want one: %t", tag, err, refused)
		}
		want := items(tag, map[bool]string{true: "old", false: "new"}[refused])[0]
		if exists, err := want.exists(nil); !exists || err != nil {
			t.Errorf("%s has other content: %v", tag, err)
		}
	}
}

// TestCredentials: the credentials are those of docker's configuration.
func TestCredentials(t *testing.T) {
	registry := newTestRegistry(t)
	registry.password = "secret"
	s := newSettings(t, registry.host+"/a")
	for password, want := range map[string]int{"other": program.ExitEnvironment, "secret": program.ExitFine} {
		login(t, registry.host, password)
		if code, _, err := s.publish(t); code != want {
			t.Errorf("password %s: exit code %d, want %d: %v", password, code, want, err)
		}
	}
}

// TestPlainHTTP: only localhost gets requests without TLS, even where the library would send some.
func TestPlainHTTP(t *testing.T) {
	var sent []string
	none := roundTripper(func(request *http.Request) (*http.Response, error) {
		sent = append(sent, request.URL.String())
		return nil, errors.New("no such registry")
	})
	for url, refused := range map[string]bool{
		"https://registry.example.org/v2/": false, "http://localhost:5000/v2/": false, "http://a.localhost/v2/": false,
		"http://127.0.0.1:5000/v2/": false, "http://[::1]:5000/v2/": false,
		"http://registry.example.org/v2/": true, "http://10.0.0.1:5000/v2/": true, "http://localhost.example.org/v2/": true,
	} {
		sent = nil
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := encrypted{none}.RoundTrip(request)
		if response != nil {
			_ = response.Body.Close()
		}
		if (program.ExitCode(err) == program.ExitUsage) != refused || (len(sent) == 0) != refused {
			t.Errorf("%s: error %v, sent %v", url, err, sent)
		}
	}

	sent = nil
	code, _, err := newSettings(t, "10.0.0.1:5000/x").publish(t, remote.WithTransport(encrypted{none}))
	if code != program.ExitUsage || !strings.Contains(err.Error(), "unencrypted") {
		t.Errorf("exit code %d, want %d: %v", code, program.ExitUsage, err)
	}
	if slices.ContainsFunc(sent, func(url string) bool { return !strings.HasPrefix(url, "https:") }) {
		t.Errorf("sent %v", sent)
	}
}

// TestExitCodes: mistakes and missing images are found before the first request.
func TestExitCodes(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*settings)
		want   int
		names  string
	}{
		"no registry": {func(s *settings) { s.registry = "" }, program.ExitUsage, "REGISTRY="},
		"no host":     {func(s *settings) { s.registry = "gardener" }, program.ExitUsage, "gardener"},
		"a scheme":    {func(s *settings) { s.registry = "https://registry.example.org/x" }, program.ExitUsage, "host/path"},
		"bad alias":   {func(s *settings) { s.alias = "Registry/X" }, program.ExitUsage, "Registry/X"},
		"no images":   {func(s *settings) { s.images = t.TempDir() }, program.ExitEnvironment, "make images"},
		"old images":  {func(s *settings) { s.images = newImages(t, "v0.0.9") }, program.ExitEnvironment, "make images"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSettings(t, "registry.test/x")
			test.change(&s)
			none := roundTripper(func(request *http.Request) (*http.Response, error) {
				t.Errorf("sent %s", request.URL)
				return nil, errors.New("no registry")
			})
			if code, _, err := s.publish(t, remote.WithTransport(none)); code != test.want || !strings.Contains(err.Error(), test.names) {
				t.Errorf("exit code %d, want %d and an error that names %q: %v", code, test.want, test.names, err)
			}
		})
	}
}
