package diagnostics

import (
	"context"
	"io"
	"os"
)

// Text returns a source with one file next to the index, for example Text("versions.txt", "…").
func Text(name, content string) Source {
	return Computed(name, func(context.Context) ([]byte, error) { return []byte(content), nil })
}

// Computed returns a source with one file next to the index. Content that is returned together with
// an error is stored too.
func Computed(name string, content func(context.Context) ([]byte, error)) Source {
	return computed{name, content}
}

type computed struct {
	file    string
	content func(context.Context) ([]byte, error)
}

func (c computed) Name() string { return "" }

func (c computed) Collect(ctx context.Context, into *Folder) {
	content, err := c.content(ctx)
	into.Fail(c.file, err)
	if err == nil || len(content) > 0 {
		into.Write(c.file, content)
	}
}

// tailBytes limits what Tail keeps of a file.
const tailBytes = 4 << 20

// Tail returns a source with the last 4 MiB of a local file. A missing file counts as empty.
func Tail(name, path string) Source {
	return Computed(name, func(context.Context) ([]byte, error) {
		file, err := os.Open(path)
		if os.IsNotExist(err) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		defer func() { _ = file.Close() }() // opened for reading
		info, err := file.Stat()
		if err != nil {
			return nil, err
		}
		return io.ReadAll(io.NewSectionReader(file, max(0, info.Size()-tailBytes), tailBytes))
	})
}
