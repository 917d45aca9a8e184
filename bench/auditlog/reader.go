package auditlog

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

const (
	// quiet is how long an API server is asked for nothing before it counts as left alone.
	quiet = time.Second
	// quietTimeout bounds the wait for that.
	quietTimeout = 30 * time.Second
)

// Reader reads each event of an audit log once. It is not safe for concurrent use.
type Reader struct {
	path   string
	offset int64
}

// NewReader returns a Reader at the beginning of the file, which need not exist yet.
func NewReader(path string) *Reader { return &Reader{path: path} }

// Next returns the events that were written since the last call, in the order of the file.
func (r *Reader) Next() ([]auditv1.Event, error) {
	data, err := r.rest()
	if err != nil {
		return nil, fmt.Errorf("reading the audit log: %w", err)
	}
	whole := data[:bytes.LastIndexByte(data, '\n')+1] // the rest of the last line is still being written
	r.offset += int64(len(whole))
	var events []auditv1.Event
	for line := range bytes.Lines(whole) {
		var event auditv1.Event
		if err := json.Unmarshal(line, &event); err != nil {
			return nil, fmt.Errorf("reading an event of the audit log %s: %w", r.path, err)
		}
		events = append(events, event)
	}
	return events, nil
}

// rest returns what stands in the file behind the offset.
func (r *Reader) rest() (data []byte, err error) {
	file, err := os.Open(r.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if _, err := file.Seek(r.offset, io.SeekStart); err != nil {
		return nil, err
	}
	return io.ReadAll(file)
}

// AwaitQuiet returns when nothing was written for a second. If that does not happen within 30 seconds the error says so.
func (r *Reader) AwaitQuiet(ctx context.Context) error {
	size := int64(-1)
	err := wait.PollUntilContextTimeout(ctx, quiet, quietTimeout, true, func(context.Context) (bool, error) {
		before := size
		info, err := os.Stat(r.path)
		if errors.Is(err, fs.ErrNotExist) {
			size = 0
		} else if err != nil {
			return false, err
		} else {
			size = info.Size()
		}
		return before == size, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for %s without a request in %s, at most %s: %w", quiet, r.path, quietTimeout, err)
	}
	return nil
}
