package accesslog

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
)

// Reader reads a growing log, one JSON object per line, and keeps the records.
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

// Until reads until the record of a request for SettlePath with the query mark. It returns all
// records before it, from the beginning of the log, without those for SettlePath. An invalid line,
// or a log that ends before the mark, is an error, after which the Reader is unusable: a lost
// record would count as a request that was never made.
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
