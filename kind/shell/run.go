package shell

import (
	"context"
	"fmt"
	"io"
	"strings"
)

// Capture runs a program that reads no input, until it or ctx ends. If its exit code is not zero,
// the error has the beginning of its standard error. Its input stays open until it ends.
func Capture(ctx context.Context, argv []string, out io.Writer) error {
	in, end := io.Pipe()
	defer func() { _ = end.Close() }()
	var problem beginning
	code, err := Run(ctx, argv, Streams{In: in, Out: out, Err: &problem})
	if err == nil && code != 0 {
		err = fmt.Errorf("%s: exit code %d: %s", argv[0], code, strings.TrimSpace(string(problem)))
	}
	return err
}

// beginning keeps the first MaxBeginning bytes that are written to it, since a program that follows
// something may print errors forever.
type beginning []byte

// MaxBeginning is how much of standard error Capture keeps, in bytes.
const MaxBeginning = 1 << 10

func (b *beginning) Write(p []byte) (int, error) {
	*b = append(*b, p[:min(len(p), MaxBeginning-len(*b))]...)
	return len(p), nil
}
