package helmchart

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

func TestArchive(t *testing.T) {
	chart := fstest.MapFS{
		"Chart.yaml":        {Data: []byte("name: sample\n")},
		"values.yaml":       {Data: []byte("a: 1\n")},
		"templates/pod.tpl": {Data: []byte("b\n")},
	}
	archive, err := Archive(chart, "sample")
	if err != nil {
		t.Fatal(err)
	}
	again, err := Archive(chart, "sample")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(archive, again) {
		t.Error("archiving the same chart twice gives different archives")
	}
	compressed, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for reader := tar.NewReader(compressed); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, header.Name)
	}
	if want := []string{"sample/Chart.yaml", "sample/templates/pod.tpl", "sample/values.yaml"}; !slices.Equal(names, want) {
		t.Errorf("the archive contains %q, want %q", names, want)
	}
}

func TestArchiveRefusesAFolderThatIsNoChart(t *testing.T) {
	if _, err := Archive(fstest.MapFS{}, "sample"); err == nil || !strings.Contains(err.Error(), "Chart.yaml") {
		t.Errorf("error = %v, want one that names Chart.yaml", err)
	}
}
