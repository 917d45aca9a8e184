package diagnostics

import (
	"context"
	"io"
	"os"
)

// Text returns a source of one file beside the index that is already known, for example Text("versions.txt", "…").
func Text(name, content string) Source {
	return Computed(name, func(context.Context) ([]byte, error) { return []byte(content), nil })
}

// Computed returns a source of one file beside the index. What comes with an error is kept.
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

// tailBytes of a file of this machine are kept.
const tailBytes = 4 << 20

// Tail returns a source with the end of a file of this machine, which need not be there.
func Tail(name, path string) Source {
	return Computed(name, func(context.Context) ([]byte, error) {
		file, err := os.Open(path)
		if os.IsNotExist(err) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		defer func() { _ = file.Close() }() // it is only read
		info, err := file.Stat()
		if err != nil {
			return nil, err
		}
		return io.ReadAll(io.NewSectionReader(file, max(0, info.Size()-tailBytes), tailBytes))
	})
}
