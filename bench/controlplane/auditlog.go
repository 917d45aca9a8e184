package controlplane

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
	// quiet is how long no request may arrive before an API server counts as idle.
	quiet        = time.Second
	quietTimeout = 30 * time.Second
)

// AuditLog reads each event of an audit log once, while the API server writes it. It is not safe
// for concurrent use.
type AuditLog struct {
	path   string
	offset int64
}

// Next returns the events since the previous call, in the order of the file. A missing file has no
// events: the API server creates it with the first one.
func (l *AuditLog) Next() ([]auditv1.Event, error) {
	data, err := l.rest()
	if err != nil {
		return nil, fmt.Errorf("reading the audit log: %w", err)
	}
	whole := data[:bytes.LastIndexByte(data, '\n')+1] // the last line may be incomplete
	l.offset += int64(len(whole))
	var events []auditv1.Event
	for line := range bytes.Lines(whole) {
		var event auditv1.Event
		if err := json.Unmarshal(line, &event); err != nil {
			return nil, fmt.Errorf("reading an event of the audit log %s: %w", l.path, err)
		}
		events = append(events, event)
	}
	return events, nil
}

// rest returns the content of the file after the offset.
func (l *AuditLog) rest() (data []byte, err error) {
	file, err := os.Open(l.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if _, err := file.Seek(l.offset, io.SeekStart); err != nil {
		return nil, err
	}
	return io.ReadAll(file)
}

// AwaitQuiet returns after one second without a new event. It fails after 30 seconds.
func (l *AuditLog) AwaitQuiet(ctx context.Context) error {
	size := int64(-1)
	err := wait.PollUntilContextTimeout(ctx, quiet, quietTimeout, true, func(context.Context) (bool, error) {
		before := size
		info, err := os.Stat(l.path)
		switch {
		case err == nil:
			size = info.Size()
		case errors.Is(err, fs.ErrNotExist):
			size = 0
		default:
			return false, err
		}
		return before == size, nil
	})
	if err != nil {
		return fmt.Errorf("no %s without a request in %s within %s: %w", quiet, l.path, quietTimeout, err)
	}
	return nil
}
