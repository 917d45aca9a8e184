package accesslog

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
)

// Reader reads a log that grows, one JSON object a line, and keeps what it has read.
type Reader struct {
	lines   *bufio.Scanner
	number  int
	records Records
}

// NewReader returns a Reader of the log.
func NewReader(log io.Reader) *Reader {
	r := &Reader{lines: bufio.NewScanner(log), records: Records{}}
	r.lines.Buffer(nil, 1<<20)
	return r
}

// Until reads on until it has seen the record of a request for SettlePath with the query mark, and returns all those before
// it, from the beginning of the log, without the other requests for SettlePath. A line that is not a record, and an end
// before the mark, is an error, and the end of the Reader: the log is evidence, and a lost line would count as "nobody
// asked".
func (r *Reader) Until(mark string) (Records, error) {
	for r.lines.Scan() {
		r.number++
		var record Record
		if err := json.Unmarshal(r.lines.Bytes(), &record); err != nil {
			return nil, fmt.Errorf("access log, line %d, %q: %w", r.number, r.lines.Text(), err)
		}
		switch {
		case record.Path != SettlePath:
			r.records = append(r.records, record)
		case record.Query == mark:
			return slices.Clip(r.records), nil
		}
	}
	if err := r.lines.Err(); err != nil {
		return nil, fmt.Errorf("access log: %w", err)
	}
	return nil, fmt.Errorf("access log ends before the request %s?%s: %w", SettlePath, mark, io.ErrUnexpectedEOF)
}

// ReadUntil reads a log from its beginning until the mark, see Reader.Until.
func ReadUntil(log io.Reader, mark string) (Records, error) {
	return NewReader(log).Until(mark)
}
