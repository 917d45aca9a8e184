package shell

import (
	"context"
	"fmt"
	"io"
	"strings"
)

// run runs a program until it ends, or ctx does. Its input ends with it.
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

// beginning keeps the first part of what is written: a program that is followed may complain for ever.
type beginning []byte

// maxBeginning is how much it keeps, in bytes.
const MaxBeginning = 1 << 10

func (b *beginning) Write(p []byte) (int, error) {
	*b = append(*b, p[:min(len(p), MaxBeginning-len(*b))]...)
	return len(p), nil
}
